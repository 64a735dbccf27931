// convert.mjs
import { createInterface } from "node:readline";

const ENDS = /^[\s\u200b-\u200f\u202a-\u202e\u2060-\u206f]+|[\s\u200b-\u200f\u202a-\u202e\u2060-\u206f]+$/g;
const PLACEHOLDERS = new Set(["", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown"]);
const LABEL = /^'?(?:(?:m|mob|mobile|cell|p|ph|phone|t|tel|telephone|h|hm|home|w|wk|work|bh):)?/i;
const IN_WORDS = /^(?:([a-z]+),? )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+) ([0-9]{4})$/i;
const MONTHS = "january,february,march,april,may,june,july,august,september,october,november,december".split(",");
const WEEKDAYS = "sunday,monday,tuesday,wednesday,thursday,friday,saturday".split(",");

const place = (names, word) => names.findIndex((name) => [name, name.slice(0, 3)].includes(word.toLowerCase()));

function value(text) {
  const plain = text.replace(ENDS, "");
  return PLACEHOLDERS.has(plain.toLowerCase()) || plain === "NA" ? "" : plain;
}

function phoneNumber(text) {
  const compact = value(text).replace(/[ \u00a0().\u2010\u2011\u2013-]/g, "").replace(LABEL, "").replace(/^0011/, "+");
  const [, prefix, national] = /^(\+610?|0061|61|0|)([234578][0-9]{8})$/.exec(compact) ?? [];
  if (national) return prefix || national[0] === "4" ? `+61${national}` : "";
  return /^\+(?!61)[1-9][0-9]{1,14}$/.test(compact) && !/\(\s*0/.test(text) ? compact : "";
}

function dateOfBirth(text) {
  const plain = value(text);
  let [, day, month, year] = /^([0-9]{1,2})\/([0-9]{1,2})\/([0-9]{4})$/.exec(plain) ?? [];
  const words = IN_WORDS.exec(plain);
  if (words) [day, month, year] = [words[2], `${place(MONTHS, words[3]) + 1}`, words[4]];
  const date = year ? `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}` : plain;
  const time = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(date) ? new Date(date) : NaN;
  if (Number.isNaN(+time) || !time.toISOString().startsWith(date)) return "";
  return words?.[1] && place(WEEKDAYS, words[1]) !== time.getUTCDay() ? "" : date;
}

const conversions = { phoneNumber, dateOfBirth };
for await (const line of createInterface({ input: process.stdin })) {
  const [field, text] = line.split("\t");
  console.log(`${field}\t${(conversions[field] ?? value)(text)}`);
}
