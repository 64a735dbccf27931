# convert.sh
set -euo pipefail

# Spaces and invisible characters, in UTF-8.
ends=(' ' $'\t' $'\xc2\xa0' $'\xef\xbb\xbf')
for last in 80\\x8{b..f} 80\\xa{a..e} 81\\xa{0..9} 81\\xa{a..f}; do ends+=("$(printf "\\xe2\\x$last")"); done

quotes=('""' "''" '“”' '„“' '‘’' '«»')
labels='(mobile|mob|m|cell|phone|ph|p|telephone|tel|t|home|hm|h|work|wk|w|bh)'

trimmed() {
  local text=$1 before='' end
  while [[ $text != "$before" ]]; do
    before=$text
    for end in "${ends[@]}"; do text=${text#"$end"} text=${text%"$end"}; done
  done
  printf '%s' "$text"
}

value() {
  local text inner pair open
  text=$(trimmed "$1")
  for pair in "${quotes[@]}"; do
    open=${pair:0:$((${#pair} / 2))} inner=${text#"$open"}
    if [[ $inner != "$text" && $inner == *"${pair#"$open"}" ]]; then
      text=${inner%"${pair#"$open"}"}
      if [[ $text == *['"']* || $text =~ “|”|„|«|» ]]; then return; fi
      text=$(trimmed "$text")
      break
    fi
  done
  case $text in
    - | -- | – | — | NA | [Nn]/[Aa] | [Nn]il | [Nn]one | [Nn]ull | NULL | [Uu]nknown) ;;
    *) printf '%s' "$text" ;;
  esac
}

phone_number() {
  local compact between
  compact=$(value "$1")
  for between in ' ' $'\xc2\xa0' '(' ')' . - $'\xe2\x80\x90' $'\xe2\x80\x91' $'\xe2\x80\x93'; do
    compact=${compact//"$between"/}
  done
  shopt -s nocasematch
  if [[ $compact =~ ^\'?$labels:?([+0-9]+)$ ]]; then
    compact=${BASH_REMATCH[2]}
  elif [[ $compact =~ ^\'?([+0-9]+)$labels?$ ]]; then
    compact=${BASH_REMATCH[1]}
  fi
  shopt -u nocasematch
  if [[ $compact == 0011* ]]; then compact=+${compact#0011}; fi
  if [[ $compact =~ ^(\+610?|0061|61|0)([234578][0-9]{8})$ ]]; then
    printf '+61%s' "${BASH_REMATCH[2]}"
  elif [[ $compact =~ ^4[0-9]{8}$ ]]; then
    printf '+61%s' "$compact"
  elif [[ $compact =~ ^\+[1-9][0-9]{1,14}$ && $compact != +61* && ! $1 =~ \([[:space:]]*0 ]]; then
    printf '%s' "$compact"
  fi
}

place() {
  local word name number=0
  word=$(printf '%s' "$1" | tr '[:upper:]' '[:lower:]')
  for name in ${2//,/ }; do
    number=$((number + 1))
    if [[ $word == "$name" || $word == "${name:0:3}" ]]; then printf '%d' "$number" && return; fi
  done
  printf 0
}

months=january,february,march,april,may,june,july,august,september,october,november,december
weekdays=sunday,monday,tuesday,wednesday,thursday,friday,saturday

date_of_birth() {
  local text year month day days weekday='' years day_of_week moved=(0 0 3 2 5 0 3 5 1 4 6 2 4)
  text=$(value "$1")
  if [[ $text =~ ^(.*)(T00:00:00((\.000)?Z)?|\ 00:00:00|\ 0?0:00)$ ]]; then text=${BASH_REMATCH[1]}; fi
  text=${text//$'\xc2\xa0'/ }
  while [[ $text == *'  '* ]]; do text=${text//  / }; done
  text=${text// \/ //}
  if [[ $text =~ ^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})$ ]]; then
    year=${BASH_REMATCH[3]} month=${BASH_REMATCH[2]} day=${BASH_REMATCH[1]}
  elif [[ $text =~ ^([0-9]{4})-([0-9]{2})-([0-9]{2})$ ]]; then
    year=${BASH_REMATCH[1]} month=${BASH_REMATCH[2]} day=${BASH_REMATCH[3]}
  elif [[ $text =~ ^(([A-Za-z]+),? )?([0-9]{1,2})(st|nd|rd|th)?( of)?\ ([A-Za-z]+)\.?\ ([0-9]{4})$ ]]; then
    year=${BASH_REMATCH[7]} day=${BASH_REMATCH[3]} weekday=${BASH_REMATCH[2]} month=$(place "${BASH_REMATCH[6]}" "$months")
  else
    return 0
  fi
  month=$((10#$month)) day=$((10#$day)) days=(0 31 28 31 30 31 30 31 31 30 31 30 31)
  if ((10#$year % 4 == 0 && (10#$year % 100 != 0 || 10#$year % 400 == 0))); then days[2]=29; fi
  if ((month > 12 || day < 1 || day > days[month])); then return 0; fi
  years=$((10#$year - (month < 3)))
  day_of_week=$(((years + years / 4 - years / 100 + years / 400 + moved[month] + day) % 7 + 1))
  if [[ -n $weekday && $(place "$weekday" "$weekdays") != "$day_of_week" ]]; then return 0; fi
  printf '%s-%02d-%02d' "$year" "$month" "$day"
}

email() {
  local address
  address=$(value "$1")
  address=${address//‘/\'} address=${address//’/\'}
  if [[ $address =~ ^[^[:space:]@,\;]+@[^[:space:]@,\;]+\.[^[:space:]@,\;]+$ ]]; then printf '%s' "$address"; fi
}

plain() {
  local text
  text=$(value "$1" | tr -d . | tr '[:upper:]' '[:lower:]')
  while [[ $text == *'  '* ]]; do text=${text//  / }; done
  printf '%s' "$text"
}

country() {
  case $(plain "$1") in
    au | aus | aust | australia | 'commonwealth of australia') printf AU ;;
  esac
}

state() {
  case $(plain "$1") in
    act | 'australian capital territory') printf ACT ;;
    nsw | 'new south wales') printf NSW ;;
    nt | 'northern territory') printf NT ;;
    qld | queensland) printf QLD ;;
    sa | 'south australia') printf SA ;;
    tas | tasmania) printf TAS ;;
    vic | victoria) printf VIC ;;
    wa | 'western australia') printf WA ;;
  esac
}

while IFS= read -r line; do
  field=${line%%$'\t'*} text=${line#*$'\t'}
  case $field in
    phoneNumber) sent=$(phone_number "$text") ;;
    dateOfBirth) sent=$(date_of_birth "$text") ;;
    email | state | country) sent=$("$field" "$text") ;;
    *) sent=$(value "$text") ;;
  esac
  printf '%s\t%s\n' "$field" "$sent"
done
