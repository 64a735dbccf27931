# create_patient.sh
set -euo pipefail

read -r key <<<"$INTAKE_KEY"
[[ $key =~ ^[a-z0-9]+_(live|demo)_[0-9A-Za-z]{36}$ ]] || { echo "INTAKE_KEY is not an API key" >&2; exit 1; }

# Creates the patient in a file, retrying for a minute.
create_patient() {
  local file=$1 idempotency_key=$2 end=$((SECONDS + 60)) longest_pause=1 pause answer status retry_after
  while :; do
    # The key goes in by way of a pipe: other users can see the arguments of a program.
    answer=$(printf 'header = "Authorization: Bearer %s"\n' "$key" |
      curl --config - --silent --max-time 15 --output answer.json --write-out '%{http_code} %header{retry-after}' \
        --header "Content-Type: application/json" --header "Idempotency-Key: $idempotency_key" \
        --data-binary "@$file" "$INTAKE_URL/patients") || case $? in
      1 | 3 | 60 | 77) echo "check the address and the certificate" >&2; return 1 ;; # Retrying won't help.
    esac
    read -r status retry_after <<<"$answer" || true
    case $status in
      000 | 408 | 429 | 500 | 502 | 503 | 504) ;; # 000: no answer
      201) cat answer.json; return ;;
      *) echo "refused with $status: $(cat answer.json)" >&2; return 1 ;;
    esac
    [[ $retry_after =~ ^[0-9]+$ ]] || retry_after=0
    pause=$((retry_after + 1 + RANDOM % longest_pause))
    if ((SECONDS + pause >= end)); then
      echo "not answered in time, try again later with the same key: status $status" >&2
      return 1
    fi
    sleep "$pause"
    longest_pause=$((longest_pause < 10 ? longest_pause * 2 : 20))
  done
}

# The outbox: written before the first try, deleted after the answer.
[[ -e booking-1005.json ]] || cat >booking-1005.json <<'JSON'
{"firstName": "Mary", "lastName": "Jackson", "phoneNumber": "+61491570159", "dateOfBirth": "1981-04-09"}
JSON
create_patient booking-1005.json acme-booking-1005
