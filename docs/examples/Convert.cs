// Convert.cs
using System;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text.RegularExpressions;

public static class Convert
{
    const string Ends = "[\\s\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+";
    const string Label = "^'?(?:(?:m|mob|mobile|cell|p|ph|phone|t|tel|telephone|h|hm|home|w|wk|work|bh):)?";
    const string Unneeded = "^([a-z]+),(?= )|(?<=^([a-z]+,? )?[0-9]{1,2})(?:st|nd|rd|th)?(?: of)?(?= [a-z])";
    static readonly string[] Forms = { "yyyy-MM-dd", "d MMMM yyyy", "d MMM yyyy", "dddd d MMMM yyyy", "dddd d MMM yyyy", "ddd d MMMM yyyy", "ddd d MMM yyyy" };
    static readonly string[] Placeholders = { "", "-", "--", "–", "—", "n/a", "nil", "none", "null", "unknown" };

    static string Value(string text)
    {
        var plain = Regex.Replace(text, $"^{Ends}|{Ends}$", "");
        return Placeholders.Contains(plain.ToLowerInvariant()) || plain == "NA" ? "" : plain;
    }

    static string PhoneNumber(string text)
    {
        var compact = Regex.Replace(Value(text), "[ \u00a0().\u2010\u2011\u2013-]", "");
        compact = Regex.Replace(Regex.Replace(compact, Label, "", RegexOptions.IgnoreCase), "^0011", "+");
        var found = Regex.Match(compact, @"^(\+610?|0061|61|0|)([234578][0-9]{8})\z");
        if (found.Success && (found.Groups[1].Value != "" || found.Groups[2].Value[0] == '4'))
            return "+61" + found.Groups[2].Value;
        return Regex.IsMatch(compact, @"^\+(?!61)[1-9][0-9]{1,14}\z") && !Regex.IsMatch(text, @"\(\s*0") ? compact : "";
    }

    static string DateOfBirth(string text)
    {
        var plain = Regex.Replace(Value(text), Unneeded, "$1", RegexOptions.IgnoreCase);
        var found = Regex.Match(plain, @"^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})\z");
        if (found.Success)
            plain = $"{found.Groups[3]}-{found.Groups[2].Value.PadLeft(2, '0')}-{found.Groups[1].Value.PadLeft(2, '0')}";
        var invariant = CultureInfo.InvariantCulture;
            return DateTime.TryParseExact(plain, Forms, invariant, DateTimeStyles.None, out var day) ? day.ToString("yyyy-MM-dd", invariant) : "";
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
            output.WriteLine(parts[0] + "\t" + convert(parts[1]));
        }
    }
}
