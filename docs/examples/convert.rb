# convert.rb
require "date"

ENDS = /\A[\s\u00a0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+|[\s\u00a0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+\z/
PLACEHOLDERS = ["", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown"].freeze
QUOTES = ['""', "''", "“”", "„“", "‘’", "«»"].freeze
IN_WORDS = /\A(?:([a-z]+),? )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+)\.? ([0-9]{4})\z/i
MIDNIGHT = /(T00:00:00((\.000)?Z)?| 00:00:00| 0?0:00)\z/
LABEL = /(?:mobile|mob|m|cell|phone|ph|p|telephone|tel|t|home|hm|h|work|wk|w|bh)/i
LABELLED = /\A'?(?:#{LABEL}:?([+0-9]+)|([+0-9]+)#{LABEL}?)\z/
COUNTRIES = { "AU" => ["au", "aus", "aust", "australia", "commonwealth of australia"] }.freeze
STATES = {
  "ACT" => ["act", "australian capital territory"],
  "NSW" => ["nsw", "new south wales"],
  "NT" => ["nt", "northern territory"],
  "QLD" => ["qld", "queensland"],
  "SA" => ["sa", "south australia"],
  "TAS" => ["tas", "tasmania"],
  "VIC" => ["vic", "victoria"],
  "WA" => ["wa", "western australia"]
}.freeze

def value(text)
  plain = text.gsub(ENDS, "")
  if plain.length > 1 && QUOTES.include?(plain[0] + plain[-1])
    plain = plain[1..-2].match?(/["“”„«»]/) ? "" : plain[1..-2].gsub(ENDS, "")
  end
  PLACEHOLDERS.include?(plain.downcase) || plain == "NA" ? "" : plain
end

def phone_number(text)
  labelled = value(text).gsub(/[ \u00a0().\u2010\u2011\u2013-]/, "").match(LABELLED)
  compact = labelled ? (labelled[1] || labelled[2]).sub(/\A0011/, "+") : ""
  if (found = compact.match(/\A(\+610?|0061|61|0|)([234578][0-9]{8})\z/))
    return found[1].empty? && found[2][0] != "4" ? "" : "+61#{found[2]}"
  end
  compact.match?(/\A\+(?!61)[1-9][0-9]{1,14}\z/) && !text.match?(/\(\s*0/) ? compact : ""
end

def date_of_birth(text)
  plain, form = value(text).sub(MIDNIGHT, "").gsub(/[ \u00a0]+/, " ").gsub(" / ", "/"), "%Y-%m-%d"
  if (found = plain.match(%r{\A([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})\z}))
    plain = format("%s-%02d-%02d", found[3], found[2].to_i, found[1].to_i)
  elsif (words = plain.match(IN_WORDS))
    plain, form = words.values_at(2, 3, 4).join(" "), "%d %b %Y"
  elsif !plain.match?(/\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z/)
    return ""
  end
  day = Date.strptime(plain, form)
  weekday = words && words[1]
  weekday.nil? || day.strftime("%A %a").downcase.split.include?(weekday.downcase) ? day.to_s : ""
rescue Date::Error
  ""
end

def email(text)
  address = value(text).tr("‘’", "'")
  address.match?(/\A[^\s@,;]+@[^\s@,;]+\.[^\s@,;]+\z/) ? address : ""
end

def listed(codes, text)
  plain = value(text).delete(".").gsub(/\s+/, " ").downcase
  codes.keys.find { |code| codes[code].include?(plain) } || ""
end

def state(text) = listed(STATES, text)
def country(text) = listed(COUNTRIES, text)

CONVERSIONS = {
  "phoneNumber" => :phone_number, "dateOfBirth" => :date_of_birth,
  "email" => :email, "state" => :state, "country" => :country
}.freeze
$stdin.set_encoding("UTF-8").each_line(chomp: true) do |line|
  field, text = line.split("\t", -1)
  puts "#{field}\t#{send(CONVERSIONS.fetch(field, :value), text)}"
end
