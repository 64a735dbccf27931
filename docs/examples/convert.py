# convert.py
import re
import sys
from datetime import datetime

ENDS = " \t\u00a0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
PLACEHOLDERS = {"", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown"}
QUOTES = {'""', "''", "“”", "„“", "‘’", "«»"}
IN_WORDS = r"(?:([a-z]+),? )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+)\.? ([0-9]{4})"
MIDNIGHT = r"(T00:00:00((\.000)?Z)?| 00:00:00| 0?0:00)$"
LABEL = "(?:mobile|mob|m|cell|phone|ph|p|telephone|tel|t|home|hm|h|work|wk|w|bh)"
COUNTRIES = dict.fromkeys(["au", "aus", "aust", "australia", "commonwealth of australia"], "AU")
STATES = {
    "australian capital territory": "ACT",
    "new south wales": "NSW",
    "northern territory": "NT",
    "queensland": "QLD",
    "south australia": "SA",
    "tasmania": "TAS",
    "victoria": "VIC",
    "western australia": "WA",
}
STATES.update({code.lower(): code for code in STATES.values()})


def trimmed(text):
    return re.sub(f"^[{ENDS}]+|[{ENDS}]+$", "", text)


def value(text):
    text = trimmed(text)
    if len(text) > 1 and text[0] + text[-1] in QUOTES:
        text = "" if re.search('["“”„«»]', text[1:-1]) else trimmed(text[1:-1])
    return None if text.lower() in PLACEHOLDERS or text == "NA" else text


def phone_number(text):
    compact = re.sub("[ \u00a0().\u2010\u2011\u2013-]", "", value(text) or "")
    found = re.fullmatch(f"'?(?:{LABEL}:?([+0-9]+)|([+0-9]+){LABEL}?)", compact, re.IGNORECASE)
    compact = re.sub("^0011", "+", found[1] or found[2]) if found else ""
    if found := re.fullmatch(r"(\+610?|0061|61|0|)([234578][0-9]{8})", compact):
        return "+61" + found[2] if found[1] or found[2][0] == "4" else None
    is_clear = re.fullmatch(r"\+(?!61)[1-9][0-9]{1,14}", compact) and not re.search(r"\(\s*0", text)
    return compact if is_clear else None


def date_of_birth(text):
    text, form, weekday = re.sub(MIDNIGHT, "", value(text) or ""), "%Y-%m-%d", None
    text = re.sub("[ \u00a0]+", " ", text).replace(" / ", "/")
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


def email(text):
    address = re.sub("[‘’]", "'", value(text) or "")
    return address if re.fullmatch(r"[^\s@,;]+@[^\s@,;]+\.[^\s@,;]+", address) else None


def listed(codes):
    return lambda text: codes.get(re.sub(r"\s+", " ", (value(text) or "").replace(".", "")).lower())


CONVERSIONS = {
    "phoneNumber": phone_number,
    "dateOfBirth": date_of_birth,
    "email": email,
    "state": listed(STATES),
    "country": listed(COUNTRIES),
}
for line in sys.stdin:
    field, text = line.rstrip("\n").split("\t")
    print(field, CONVERSIONS.get(field, value)(text) or "", sep="\t")
