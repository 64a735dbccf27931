// Convert.cs
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text.RegularExpressions;

public static class Convert
{
    const string Ends = "[\\s\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+";
    const string Label = "(?:mobile|mob|m|cell|phone|ph|p|telephone|tel|t|home|hm|h|work|wk|w|bh)";
    const string Midnight = @"(T00:00:00((\.000)?Z)?| 00:00:00| 0?0:00)\z";
    const string Unneeded = @"^([a-z]+),(?= )|(?<=^([a-z]+,? )?[0-9]{1,2})(?:st|nd|rd|th)?(?: of)?(?= [a-z])|(?<= [a-z]+)\.(?= [0-9])";
    static readonly string[] Quotes = { "\"\"", "''", "“”", "„“", "‘’", "«»" };
    static readonly Dictionary<string, string[]> Countries = new Dictionary<string, string[]> {
        { "AU", new[] { "au", "aus", "aust", "australia", "commonwealth of australia" } },
    };
    static readonly Dictionary<string, string[]> States = new Dictionary<string, string[]> {
        { "ACT", new[] { "act", "australian capital territory" } },
        { "NSW", new[] { "nsw", "new south wales" } },
        { "NT", new[] { "nt", "northern territory" } },
        { "QLD", new[] { "qld", "queensland" } },
        { "SA", new[] { "sa", "south australia" } },
        { "TAS", new[] { "tas", "tasmania" } },
        { "VIC", new[] { "vic", "victoria" } },
        { "WA", new[] { "wa", "western australia" } },
    };
    static readonly string[] Forms = { "yyyy-MM-dd", "d MMMM yyyy", "d MMM yyyy", "dddd d MMMM yyyy", "dddd d MMM yyyy", "ddd d MMMM yyyy", "ddd d MMM yyyy" };
    static readonly string[] Placeholders = { "", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown" };

    static string Trimmed(string text)
    {
        return Regex.Replace(text, $"^{Ends}|{Ends}$", "");
    }

    static string Value(string text)
    {
        var plain = Trimmed(text);
        var found = Regex.Match(plain, @"^(.)(.*)(.)\z");
        if (Quotes.Contains(found.Groups[1].Value + found.Groups[3].Value))
            plain = Regex.IsMatch(found.Groups[2].Value, "[\"“”„«»]") ? "" : Trimmed(found.Groups[2].Value);
        return Placeholders.Contains(plain.ToLowerInvariant()) || plain == "NA" ? "" : plain;
    }

    static string PhoneNumber(string text)
    {
        var compact = Regex.Replace(Value(text), "[ \u00a0().\u2010\u2011\u2013-]", "");
        var labelled = Regex.Match(compact, $"^'?(?:{Label}:?([+0-9]+)|([+0-9]+){Label}?)\\z", RegexOptions.IgnoreCase);
        compact = Regex.Replace(labelled.Groups[1].Value + labelled.Groups[2].Value, "^0011", "+");
        var found = Regex.Match(compact, @"^(\+610?|0061|61|0|)([234578][0-9]{8})\z");
        if (found.Success && (found.Groups[1].Value != "" || found.Groups[2].Value[0] == '4'))
            return "+61" + found.Groups[2].Value;
        return Regex.IsMatch(compact, @"^\+(?!61)[1-9][0-9]{1,14}\z") && !Regex.IsMatch(text, @"\(\s*0") ? compact : "";
    }

    static string DateOfBirth(string text)
    {
        var plain = Regex.Replace(Regex.Replace(Value(text), Midnight, ""), "[ \u00a0]+", " ").Replace(" / ", "/");
        plain = Regex.Replace(plain, Unneeded, "$1", RegexOptions.IgnoreCase);
        var found = Regex.Match(plain, @"^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})\z");
        if (found.Success)
            plain = $"{found.Groups[3]}-{found.Groups[2].Value.PadLeft(2, '0')}-{found.Groups[1].Value.PadLeft(2, '0')}";
        var invariant = CultureInfo.InvariantCulture;
        return DateTime.TryParseExact(plain, Forms, invariant, DateTimeStyles.None, out var day) ? day.ToString("yyyy-MM-dd", invariant) : "";
    }

    static string Email(string text)
    {
        var address = Regex.Replace(Value(text), "[‘’]", "'");
        return Regex.IsMatch(address, @"^[^\s@,;]+@[^\s@,;]+\.[^\s@,;]+\z") ? address : "";
    }

    static Func<string, string> Listed(Dictionary<string, string[]> codes)
    {
        return text =>
        {
            var plain = Regex.Replace(Value(text).Replace(".", ""), @"\s+", " ").ToLowerInvariant();
            return codes.Keys.FirstOrDefault(code => codes[code].Contains(plain)) ?? "";
        };
    }

    public static void Main()
    {
        var input = new StreamReader(Console.OpenStandardInput());
        var output = new StreamWriter(Console.OpenStandardOutput()) { AutoFlush = true };
        for (string line; (line = input.ReadLine()) != null;)
        {
            var parts = line.Split('\t');
            Func<string, string> convert = Value;
            if (parts[0] == "phoneNumber") convert = PhoneNumber;
            if (parts[0] == "dateOfBirth") convert = DateOfBirth;
            if (parts[0] == "email") convert = Email;
            if (parts[0] == "state") convert = Listed(States);
            if (parts[0] == "country") convert = Listed(Countries);
            output.WriteLine(parts[0] + "\t" + convert(parts[1]));
        }
    }
}
