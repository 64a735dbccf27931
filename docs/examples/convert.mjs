// convert.mjs
import { createInterface } from "node:readline";

const ENDS = /^[\s\u200b-\u200f\u202a-\u202e\u2060-\u206f]+|[\s\u200b-\u200f\u202a-\u202e\u2060-\u206f]+$/g;
const PLACEHOLDERS = new Set(["", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown"]);
const QUOTES = ['""', "''", "“”", "„“", "‘’", "«»"];
const LABEL = "(?:mobile|mob|m|cell|phone|ph|p|telephone|tel|t|home|hm|h|work|wk|w|bh)";
const LABELLED = new RegExp(`^'?(?:${LABEL}:?([+0-9]+)|([+0-9]+)${LABEL}?)$`, "i");
const IN_WORDS = /^(?:([a-z]+),? )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+)\.? ([0-9]{4})$/i;
const MIDNIGHT = /(T00:00:00((\.000)?Z)?| 00:00:00| 0?0:00)$/;
const MONTHS = "january,february,march,april,may,june,july,august,september,october,november,december".split(",");
const WEEKDAYS = "sunday,monday,tuesday,wednesday,thursday,friday,saturday".split(",");

const COUNTRIES = { AU: ["au", "aus", "aust", "australia", "commonwealth of australia"] };
const STATES = {
  ACT: ["act", "australian capital territory"],
  NSW: ["nsw", "new south wales"],
  NT: ["nt", "northern territory"],
  QLD: ["qld", "queensland"],
  SA: ["sa", "south australia"],
  TAS: ["tas", "tasmania"],
  VIC: ["vic", "victoria"],
  WA: ["wa", "western australia"],
};

const place = (names, word) => names.findIndex((name) => [name, name.slice(0, 3)].includes(word.toLowerCase()));

function value(text) {
  let plain = text.replace(ENDS, "");
  const [, open, inner, close] = /^(.)(.*)(.)$/.exec(plain) ?? [];
  if (QUOTES.includes(open + close)) plain = /["“”„«»]/.test(inner) ? "" : inner.replace(ENDS, "");
  return PLACEHOLDERS.has(plain.toLowerCase()) || plain === "NA" ? "" : plain;
}

function phoneNumber(text) {
  const labelled = LABELLED.exec(value(text).replace(/[ \u00a0().\u2010\u2011\u2013-]/g, ""));
  const compact = (labelled?.[1] ?? labelled?.[2] ?? "").replace(/^0011/, "+");
  const [, prefix, national] = /^(\+610?|0061|61|0|)([234578][0-9]{8})$/.exec(compact) ?? [];
  if (national) return prefix || national[0] === "4" ? `+61${national}` : "";
  return /^\+(?!61)[1-9][0-9]{1,14}$/.test(compact) && !/\(\s*0/.test(text) ? compact : "";
}

function dateOfBirth(text) {
  const plain = value(text).replace(MIDNIGHT, "").replace(/[ \u00a0]+/g, " ").replaceAll(" / ", "/");
  let [, day, month, year] = /^([0-9]{1,2})\/([0-9]{1,2})\/([0-9]{4})$/.exec(plain) ?? [];
  const words = IN_WORDS.exec(plain);
  if (words) [day, month, year] = [words[2], `${place(MONTHS, words[3]) + 1}`, words[4]];
  const date = year ? `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}` : plain;
  const time = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(date) ? new Date(date) : NaN;
  if (Number.isNaN(+time) || !time.toISOString().startsWith(date)) return "";
  return words?.[1] && place(WEEKDAYS, words[1]) !== time.getUTCDay() ? "" : date;
}

function email(text) {
  const address = value(text).replace(/[‘’]/g, "'");
  return /^[^\s@,;]+@[^\s@,;]+\.[^\s@,;]+$/.test(address) ? address : "";
}

function listed(codes, text) {
  const plain = value(text).replaceAll(".", "").replace(/\s+/g, " ").toLowerCase();
  return Object.keys(codes).find((code) => codes[code].includes(plain)) ?? "";
}

const state = (text) => listed(STATES, text);
const country = (text) => listed(COUNTRIES, text);
const conversions = { phoneNumber, dateOfBirth, email, state, country };
for await (const line of createInterface({ input: process.stdin })) {
  const [field, text] = line.split("\t");
  console.log(`${field}\t${(conversions[field] ?? value)(text)}`);
}
