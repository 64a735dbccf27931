# convert.rb
require "date"

ENDS = /\A[\s\u00a0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+|[\s\u00a0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+\z/
PLACEHOLDERS = ["", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown"].freeze
IN_WORDS = /\A(?:([a-z]+),? )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+) ([0-9]{4})\z/i
LABEL = /\A'?(?:(?:m|mob|mobile|cell|p|ph|phone|t|tel|telephone|h|hm|home|w|wk|work|bh):)?/i

def value(text)
  plain = text.gsub(ENDS, "")
  PLACEHOLDERS.include?(plain.downcase) || plain == "NA" ? "" : plain
end

def phone_number(text)
  compact = value(text).gsub(/[ \u00a0().\u2010\u2011\u2013-]/, "").sub(LABEL, "").sub(/\A0011/, "+")
  if (found = compact.match(/\A(\+610?|0061|61|0|)([234578][0-9]{8})\z/))
    return found[1].empty? && found[2][0] != "4" ? "" : "+61#{found[2]}"
  end
  compact.match?(/\A\+(?!61)[1-9][0-9]{1,14}\z/) && !text.match?(/\(\s*0/) ? compact : ""
end

def date_of_birth(text)
  plain, form = value(text), "%Y-%m-%d"
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

CONVERSIONS = { "phoneNumber" => :phone_number, "dateOfBirth" => :date_of_birth }.freeze
$stdin.set_encoding("UTF-8").each_line(chomp: true) do |line|
  field, text = line.split("\t", -1)
  puts "#{field}\t#{send(CONVERSIONS.fetch(field, :value), text)}"
end
