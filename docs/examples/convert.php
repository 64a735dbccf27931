<?php
// convert.php
const ENDS = '[\s\x{a0}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}\x{feff}]+';
const PLACEHOLDERS = ['', '-', '--', '–', '—', 'n/a', 'nil', 'none', 'null', 'unknown'];
const QUOTES = ['""', "''", '“”', '„“', '‘’', '«»'];
const IN_WORDS = '/^(?:([a-z]+),? )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+)\.? ([0-9]{4})$/Di';
const MIDNIGHT = '/(T00:00:00((\.000)?Z)?| 00:00:00| 0?0:00)$/D';
const LABEL = '(?:mobile|mob|m|cell|phone|ph|p|telephone|tel|t|home|hm|h|work|wk|w|bh)';
const LABELLED = "/^'?(?:" . LABEL . ':?([+0-9]+)|([+0-9]+)' . LABEL . '?)$/Di';
const COUNTRIES = ['AU' => ['au', 'aus', 'aust', 'australia', 'commonwealth of australia']];
const STATES = [
    'ACT' => ['act', 'australian capital territory'],
    'NSW' => ['nsw', 'new south wales'],
    'NT' => ['nt', 'northern territory'],
    'QLD' => ['qld', 'queensland'],
    'SA' => ['sa', 'south australia'],
    'TAS' => ['tas', 'tasmania'],
    'VIC' => ['vic', 'victoria'],
    'WA' => ['wa', 'western australia'],
];

function trimmed(string $text): string
{
    return preg_replace('/^' . ENDS . '|' . ENDS . '$/u', '', $text);
}

function value(string $text): string
{
    $plain = trimmed($text);
    if (preg_match('/^(.)(.*)(.)$/Du', $plain, $found) && in_array($found[1] . $found[3], QUOTES, true)) {
        $plain = preg_match('/["“”„«»]/u', $found[2]) ? '' : trimmed($found[2]);
    }
    return in_array(strtolower($plain), PLACEHOLDERS, true) || $plain === 'NA' ? '' : $plain;
}

function phone_number(string $text): string
{
    $compact = preg_replace('/[ \x{a0}().\x{2010}\x{2011}\x{2013}-]/u', '', value($text));
    preg_match(LABELLED, $compact, $found);
    $compact = preg_replace('/^0011/', '+', end($found) ?: '');
    if (preg_match('/^(\+610?|0061|61|0|)([234578][0-9]{8})$/D', $compact, $found)) {
        return $found[1] !== '' || $found[2][0] === '4' ? "+61$found[2]" : '';
    }
    return preg_match('/^\+(?!61)[1-9][0-9]{1,14}$/D', $compact) && !preg_match('/\(\s*0/', $text) ? $compact : '';
}

function date_of_birth(string $text): string
{
    $plain = preg_replace(['/[ \x{a0}]+/u', '# / #'], [' ', '/'], preg_replace(MIDNIGHT, '', value($text)));
    if (preg_match('#^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})$#D', $plain, $found)) {
        $plain = sprintf('%s-%02d-%02d', $found[3], $found[2], $found[1]);
    } elseif (preg_match(IN_WORDS, $plain, $words)) {
        $month = date_create("1 $words[3] 2000");
        $isMonth = $month && in_array(strtolower($words[3]), explode(' ', strtolower($month->format('F M'))), true);
        $plain = sprintf('%s-%02d-%02d', $words[4], $isMonth ? $month->format('n') : 0, $words[2]);
    }
    $isDate = preg_match('/^([0-9]{4})-([0-9]{2})-([0-9]{2})$/D', $plain, $found)
        && checkdate((int) $found[2], (int) $found[3], (int) $found[1]);
    $weekday = strtolower($words[1] ?? '');
    $isNamed = $isDate && in_array($weekday, ['', ...explode(' ', strtolower(date_create($plain)->format('l D')))], true);
    return $isNamed ? $plain : '';
}

function email(string $text): string
{
    $address = str_replace(['‘', '’'], "'", value($text));
    return preg_match('/^[^\s@,;]+@[^\s@,;]+\.[^\s@,;]+$/Du', $address) ? $address : '';
}

function listed(array $codes, string $text): string
{
    $plain = strtolower(preg_replace('/\s+/u', ' ', str_replace('.', '', value($text))));
    return array_key_first(array_filter($codes, fn($names) => in_array($plain, $names, true))) ?? '';
}

$conversions = [
    'phoneNumber' => 'phone_number',
    'dateOfBirth' => 'date_of_birth',
    'email' => 'email',
    'state' => fn($text) => listed(STATES, $text),
    'country' => fn($text) => listed(COUNTRIES, $text),
];
while (($line = fgets(STDIN)) !== false) {
    [$field, $text] = explode("\t", rtrim($line, "\n"));
    echo $field, "\t", ($conversions[$field] ?? 'value')($text), "\n";
}
