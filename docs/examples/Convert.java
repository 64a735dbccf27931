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
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Convert {
    static final String ENDS = "[\\s\u00a0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+";
    static final Set<String> PLACEHOLDERS = Set.of("", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown");
    static final String LABEL = "(?i)^'?(?:(?:m|mob|mobile|cell|p|ph|phone|t|tel|telephone|h|hm|home|w|wk|work|bh):)?";
    static final Pattern AUSTRALIAN = Pattern.compile("(\\+610?|0061|61|0|)([234578][0-9]{8})");
    static final Pattern DAY_FIRST = Pattern.compile("([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})");
    static final Pattern IN_WORDS = Pattern.compile("(?i)(?:([a-z]+),? )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+ [0-9]{4})");
    static final DateTimeFormatter FORM = new DateTimeFormatterBuilder().parseCaseInsensitive()
        .appendPattern("[uuuu-MM-dd][[EEEE ][EEE ]d [MMMM][MMM] uuuu]").toFormatter(Locale.ENGLISH).withResolverStyle(ResolverStyle.STRICT);

    static String value(String text) {
        String plain = text.replaceAll("^" + ENDS + "|" + ENDS + "$", "");
        return PLACEHOLDERS.contains(plain.toLowerCase(Locale.ROOT)) || plain.equals("NA") ? "" : plain;
    }

    static String phoneNumber(String text) {
        String compact = value(text).replaceAll("[ \u00a0().\u2010\u2011\u2013-]", "");
        compact = compact.replaceFirst(LABEL, "").replaceFirst("^0011", "+");
        Matcher found = AUSTRALIAN.matcher(compact);
        if (found.matches() && (!found.group(1).isEmpty() || found.group(2).startsWith("4"))) return "+61" + found.group(2);
        return compact.matches("\\+(?!61)[1-9][0-9]{1,14}") && !text.matches(".*\\(\\s*0.*") ? compact : "";
    }

    static String dateOfBirth(String text) {
        String plain = value(text);
        Matcher found = DAY_FIRST.matcher(plain);
        if (found.matches()) plain = (found.group(3) + "-0" + found.group(2) + "-0" + found.group(1)).replaceAll("-0([0-9]{2})", "-$1");
        Matcher words = IN_WORDS.matcher(plain);
        if (words.matches()) plain = (words.group(1) == null ? "" : words.group(1) + " ") + words.group(2) + " " + words.group(3);
        try {
            return LocalDate.parse(plain, FORM).toString();
        } catch (DateTimeException noSuchDay) {
            return "";
        }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line; (line = input.readLine()) != null; ) {
            String[] parts = line.split("\t", -1);
            output.println(parts[0] + "\t" + switch (parts[0]) {
                case "phoneNumber" -> phoneNumber(parts[1]);
                case "dateOfBirth" -> dateOfBirth(parts[1]);
                default -> value(parts[1]);
            });
        }
    }
}
