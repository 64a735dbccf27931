# convert.sh
set -euo pipefail

# Spaces and invisible characters, in UTF-8.
ends=(' ' $'\t' $'\xc2\xa0' $'\xef\xbb\xbf')
for last in 80\\x8{b..f} 80\\xa{a..e} 81\\xa{0..9} 81\\xa{a..f}; do ends+=("$(printf "\\xe2\\x$last")"); done

value() {
  local text=$1 before='' end
  while [[ $text != "$before" ]]; do
    before=$text
    for end in "${ends[@]}"; do text=${text#"$end"} text=${text%"$end"}; done
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
  compact=${compact#\'}
  shopt -s nocasematch
  if [[ $compact =~ ^(m|mob|mobile|cell|p|ph|phone|t|tel|telephone|h|hm|home|w|wk|work|bh):(.*)$ ]]; then
    compact=${BASH_REMATCH[2]}
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
  if [[ $text =~ ^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})$ ]]; then
    year=${BASH_REMATCH[3]} month=${BASH_REMATCH[2]} day=${BASH_REMATCH[1]}
  elif [[ $text =~ ^([0-9]{4})-([0-9]{2})-([0-9]{2})$ ]]; then
    year=${BASH_REMATCH[1]} month=${BASH_REMATCH[2]} day=${BASH_REMATCH[3]}
  elif [[ $text =~ ^(([A-Za-z]+),? )?([0-9]{1,2})(st|nd|rd|th)?( of)?\ ([A-Za-z]+)\ ([0-9]{4})$ ]]; then
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

while IFS= read -r line; do
  field=${line%%$'\t'*} text=${line#*$'\t'}
  case $field in
    phoneNumber) sent=$(phone_number "$text") ;;
    dateOfBirth) sent=$(date_of_birth "$text") ;;
    *) sent=$(value "$text") ;;
  esac
  printf '%s\t%s\n' "$field" "$sent"
done
