// convert.go
package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

const label = `(?:mobile|mob|m|cell|phone|ph|p|telephone|tel|t|home|hm|h|work|wk|w|bh)`

var (
	quotes    = [][2]string{{`"`, `"`}, {"'", "'"}, {"“", "”"}, {"„", "“"}, {"‘", "’"}, {"«", "»"}}
	countries = map[string]string{"au": "AU", "aus": "AU", "aust": "AU", "australia": "AU", "commonwealth of australia": "AU"}
	states    = map[string]string{
		"act": "ACT", "australian capital territory": "ACT",
		"nsw": "NSW", "new south wales": "NSW",
		"nt": "NT", "northern territory": "NT",
		"qld": "QLD", "queensland": "QLD",
		"sa": "SA", "south australia": "SA",
		"tas": "TAS", "tasmania": "TAS",
		"vic": "VIC", "victoria": "VIC",
		"wa": "WA", "western australia": "WA",
	}

	ends          = regexp.MustCompile(`^[\s\x{a0}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}\x{feff}]+|[\s\x{a0}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}\x{feff}]+$`)
	placeholders  = regexp.MustCompile(`^(?:|-|--|–|—|NA|(?i:n/a|nil|none|null|unknown))$`)
	innerQuote    = regexp.MustCompile(`["“”„«»]`)
	labelled      = regexp.MustCompile(`^'?(?i:` + label + `:?([+0-9]+)|([+0-9]+)` + label + `?)$`)
	abroad        = regexp.MustCompile(`^0011`)
	betweenDigits = regexp.MustCompile(`[ \x{a0}().\x{2010}\x{2011}\x{2013}-]`)
	australian    = regexp.MustCompile(`^(\+610?|0061|61|0|)([234578][0-9]{8})$`)
	international = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)
	trunkZero     = regexp.MustCompile(`\(\s*0`)
	dayFirst      = regexp.MustCompile(`^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})$`)
	inWords       = regexp.MustCompile(`^(?i:([a-z]+),? )?([0-9]{1,2})(?i:st|nd|rd|th)?(?i: of)? ([A-Za-z]+)\.? ([0-9]{4})$`)
	midnight      = regexp.MustCompile(`(T00:00:00((\.000)?Z)?| 00:00:00| 0?0:00)$`)
	spaces        = regexp.MustCompile(`[ \x{a0}]+`)
	address       = regexp.MustCompile(`^[^\s@,;]+@[^\s@,;]+\.[^\s@,;]+$`)
)

func value(text string) string {
	plain := ends.ReplaceAllString(text, "")
	for _, pair := range quotes {
		inner := strings.TrimSuffix(strings.TrimPrefix(plain, pair[0]), pair[1])
		if pair[0]+inner+pair[1] == plain {
			plain = ends.ReplaceAllString(inner, "")
			if innerQuote.MatchString(inner) {
				plain = ""
			}
			break
		}
	}
	return placeholders.ReplaceAllString(plain, "")
}

func phoneNumber(text string) string {
	compact := labelled.ReplaceAllString(betweenDigits.ReplaceAllString(value(text), ""), "$1$2")
	compact = abroad.ReplaceAllString(compact, "+")
	if found := australian.FindStringSubmatch(compact); found != nil && (found[1] != "" || found[2][0] == '4') {
		return "+61" + found[2]
	}
	if international.MatchString(compact) && !strings.HasPrefix(compact, "+61") && !trunkZero.MatchString(text) {
		return compact
	}
	return ""
}

func dateOfBirth(text string) string {
	plain, weekday := spaces.ReplaceAllString(midnight.ReplaceAllString(value(text), ""), " "), ""
	plain = strings.ReplaceAll(plain, " / ", "/")
	if found := dayFirst.FindStringSubmatch(plain); found != nil {
		plain = fmt.Sprintf("%s-%02s-%02s", found[3], found[2], found[1])
	}
	if found := inWords.FindStringSubmatch(plain); found != nil {
		weekday, plain = found[1], strings.Join(found[2:], " ")
	}
	for _, layout := range []string{"2006-01-02", "2 January 2006", "2 Jan 2006"} {
		day, err := time.Parse(layout, plain)
		named := strings.EqualFold(weekday, day.Format("Monday")) || strings.EqualFold(weekday, day.Format("Mon"))
		if err == nil && (weekday == "" || named) {
			return day.Format("2006-01-02")
		}
	}
	return ""
}

func email(text string) string {
	plain := strings.NewReplacer("‘", "'", "’", "'").Replace(value(text))
	if !address.MatchString(plain) {
		return ""
	}
	return plain
}

func listed(codes map[string]string) func(string) string {
	return func(text string) string {
		plain := strings.ToLower(strings.ReplaceAll(value(text), ".", ""))
		return codes[strings.Join(strings.Fields(plain), " ")]
	}
}

func main() {
	conversions := map[string]func(string) string{
		"phoneNumber": phoneNumber,
		"dateOfBirth": dateOfBirth,
		"email":       email,
		"state":       listed(states),
		"country":     listed(countries),
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		field, text, _ := strings.Cut(lines.Text(), "\t")
		convert, known := conversions[field]
		if !known {
			convert = value
		}
		fmt.Printf("%s\t%s\n", field, convert(text))
	}
}
