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

var (
	ends          = regexp.MustCompile(`^[\s\x{a0}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}\x{feff}]+|[\s\x{a0}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}\x{feff}]+$`)
	placeholders  = regexp.MustCompile(`^(?:|-|--|–|—|NA|(?i:n/a|nil|none|null|unknown))$`)
	label         = regexp.MustCompile(`^'?(?i:(?:m|mob|mobile|cell|p|ph|phone|t|tel|telephone|h|hm|home|w|wk|work|bh):)?`)
	abroad        = regexp.MustCompile(`^0011`)
	betweenDigits = regexp.MustCompile(`[ \x{a0}().\x{2010}\x{2011}\x{2013}-]`)
	australian    = regexp.MustCompile(`^(\+610?|0061|61|0|)([234578][0-9]{8})$`)
	international = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)
	trunkZero     = regexp.MustCompile(`\(\s*0`)
	dayFirst      = regexp.MustCompile(`^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})$`)
	inWords       = regexp.MustCompile(`^(?i:([a-z]+),? )?([0-9]{1,2})(?i:st|nd|rd|th)?(?i: of)? ([A-Za-z]+ [0-9]{4})$`)
)

func value(text string) string {
	return placeholders.ReplaceAllString(ends.ReplaceAllString(text, ""), "")
}

func phoneNumber(text string) string {
	compact := label.ReplaceAllString(betweenDigits.ReplaceAllString(value(text), ""), "")
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
	plain, weekday := value(text), ""
	if found := dayFirst.FindStringSubmatch(plain); found != nil {
		plain = fmt.Sprintf("%s-%02s-%02s", found[3], found[2], found[1])
	}
	if found := inWords.FindStringSubmatch(plain); found != nil {
		weekday, plain = found[1], found[2]+" "+found[3]
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

func main() {
	conversions := map[string]func(string) string{"phoneNumber": phoneNumber, "dateOfBirth": dateOfBirth}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		field, text, _ := strings.Cut(lines.Text(), "\t")
		convert, known := conversions[field]
		if !known {
			convert = value
		}
		fmt.Printf("%s\t%s\n", field, convert(text))
	}
}
