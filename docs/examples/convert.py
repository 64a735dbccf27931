# convert.py
import re
import sys
from datetime import datetime

ENDS = " \t\u00a0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
PLACEHOLDERS = {"", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown"}
IN_WORDS = "(?:([a-z]+),? )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+) ([0-9]{4})"
LABEL = "^'?(?:(?:m|mob|mobile|cell|p|ph|phone|t|tel|telephone|h|hm|home|w|wk|work|bh):)?"


def value(text):
    text = re.sub(f"^[{ENDS}]+|[{ENDS}]+$", "", text)
    return None if text.lower() in PLACEHOLDERS or text == "NA" else text


def phone_number(text):
    compact = re.sub("[ \u00a0().\u2010\u2011\u2013-]", "", value(text) or "")
    compact = re.sub("^0011", "+", re.sub(LABEL, "", compact, flags=re.IGNORECASE))
    if found := re.fullmatch(r"(\+610?|0061|61|0|)([234578][0-9]{8})", compact):
        return "+61" + found[2] if found[1] or found[2][0] == "4" else None
    is_clear = re.fullmatch(r"\+(?!61)[1-9][0-9]{1,14}", compact) and not re.search(r"\(\s*0", text)
    return compact if is_clear else None


def date_of_birth(text):
    text, form, weekday = value(text) or "", "%Y-%m-%d", None
    if found := re.fullmatch(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", text):
        text = f"{found[3]}-{found[2]:0>2}-{found[1]:0>2}"
    elif found := re.fullmatch(IN_WORDS, text, re.IGNORECASE):
        weekday, day, month, year = found.groups()
        text, form = f"{day} {month} {year}", "%d %b %Y" if len(month) == 3 else "%d %B %Y"
    elif not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        day = datetime.strptime(text, form).date()
    except ValueError:
        return None
    return str(day) if not weekday or weekday.lower() in f"{day:%A %a}".lower().split() else None


CONVERSIONS = {"phoneNumber": phone_number, "dateOfBirth": date_of_birth}
for line in sys.stdin:
    field, text = line.rstrip("\n").split("\t")
    print(field, CONVERSIONS.get(field, value)(text) or "", sep="\t")
