// Convert.java
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.format.ResolverStyle;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Convert {
    static final String ENDS = "[\\s\u00a0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+";
    static final Set<String> PLACEHOLDERS = Set.of("", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown");
    static final Set<String> QUOTES = Set.of("\"\"", "''", "“”", "„“", "‘’", "«»");
    static final String LABEL = "(?:mobile|mob|m|cell|phone|ph|p|telephone|tel|t|home|hm|h|work|wk|w|bh)";
    static final Pattern LABELLED = Pattern.compile("(?i)'?(?:" + LABEL + ":?([+0-9]+)|([+0-9]+)" + LABEL + "?)");
    static final Pattern AUSTRALIAN = Pattern.compile("(\\+610?|0061|61|0|)([234578][0-9]{8})");
    static final Pattern DAY_FIRST = Pattern.compile("([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})");
    static final Pattern IN_WORDS = Pattern.compile("(?i)(?:([a-z]+),? )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+)\\.? ([0-9]{4})");
    static final String MIDNIGHT = "(T00:00:00((\\.000)?Z)?| 00:00:00| 0?0:00)$";
    static final Map<String, Set<String>> COUNTRIES = Map.of("AU", Set.of("au", "aus", "aust", "australia", "commonwealth of australia"));
    static final Map<String, Set<String>> STATES = Map.of(
        "ACT", Set.of("act", "australian capital territory"),
        "NSW", Set.of("nsw", "new south wales"),
        "NT", Set.of("nt", "northern territory"),
        "QLD", Set.of("qld", "queensland"),
        "SA", Set.of("sa", "south australia"),
        "TAS", Set.of("tas", "tasmania"),
        "VIC", Set.of("vic", "victoria"),
        "WA", Set.of("wa", "western australia"));
    static final DateTimeFormatter FORM = new DateTimeFormatterBuilder().parseCaseInsensitive()
        .appendPattern("[uuuu-MM-dd][[EEEE ][EEE ]d [MMMM][MMM] uuuu]").toFormatter(Locale.ENGLISH).withResolverStyle(ResolverStyle.STRICT);

    static String trimmed(String text) {
        return text.replaceAll("^" + ENDS + "|" + ENDS + "$", "");
    }

    static String value(String text) {
        String plain = trimmed(text);
        String inner = plain.length() > 1 ? plain.substring(1, plain.length() - 1) : "";
        if (plain.length() > 1 && QUOTES.contains("" + plain.charAt(0) + plain.charAt(plain.length() - 1)))
            plain = inner.matches(".*[\"“”„«»].*") ? "" : trimmed(inner);
        return PLACEHOLDERS.contains(plain.toLowerCase(Locale.ROOT)) || plain.equals("NA") ? "" : plain;
    }

    static String phoneNumber(String text) {
        String compact = value(text).replaceAll("[ \u00a0().\u2010\u2011\u2013-]", "");
        Matcher labelled = LABELLED.matcher(compact);
        if (!labelled.matches()) return "";
        compact = (labelled.group(1) == null ? labelled.group(2) : labelled.group(1)).replaceFirst("^0011", "+");
        Matcher found = AUSTRALIAN.matcher(compact);
        if (found.matches() && (!found.group(1).isEmpty() || found.group(2).startsWith("4"))) return "+61" + found.group(2);
        return compact.matches("\\+(?!61)[1-9][0-9]{1,14}") && !text.matches(".*\\(\\s*0.*") ? compact : "";
    }

    static String dateOfBirth(String text) {
        String plain = value(text).replaceFirst(MIDNIGHT, "").replaceAll("[ \u00a0]+", " ").replace(" / ", "/");
        Matcher found = DAY_FIRST.matcher(plain);
        if (found.matches()) plain = (found.group(3) + "-0" + found.group(2) + "-0" + found.group(1)).replaceAll("-0([0-9]{2})", "-$1");
        Matcher words = IN_WORDS.matcher(plain);
        if (words.matches()) plain = (words.group(1) == null ? "" : words.group(1) + " ") + words.group(2) + " " + words.group(3) + " " + words.group(4);
        try {
            return LocalDate.parse(plain, FORM).toString();
        } catch (DateTimeException noSuchDay) {
            return "";
        }
    }

    static String email(String text) {
        String address = value(text).replaceAll("[‘’]", "'");
        return address.matches("[^\\s@,;]+@[^\\s@,;]+\\.[^\\s@,;]+") ? address : "";
    }

    static String listed(Map<String, Set<String>> codes, String text) {
        String plain = value(text).replace(".", "").replaceAll("\\s+", " ").toLowerCase(Locale.ROOT);
        return codes.keySet().stream().filter(code -> codes.get(code).contains(plain)).findFirst().orElse("");
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line; (line = input.readLine()) != null; ) {
            String[] parts = line.split("\t", -1);
            output.println(parts[0] + "\t" + switch (parts[0]) {
                case "phoneNumber" -> phoneNumber(parts[1]);
                case "dateOfBirth" -> dateOfBirth(parts[1]);
                case "email" -> email(parts[1]);
                case "state" -> listed(STATES, parts[1]);
                case "country" -> listed(COUNTRIES, parts[1]);
                default -> value(parts[1]);
            });
        }
    }
}
