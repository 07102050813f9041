package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// decimalType takes a decimal type apart.
var decimalType = regexp.MustCompile(`^(?:DECIMAL|NUMERIC|DEC)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?$`)

// integerTypes are the types that round a fraction away when text is cast to
// them.
var integerTypes = set("TINYINT", "INT1", "SMALLINT", "INT2", "INT16", "SHORT", "INTEGER", "INT", "INT4", "INT32", "SIGNED", "INTEGRAL",
	"BIGINT", "INT8", "INT64", "LONG", "HUGEINT", "INT128", "UTINYINT", "UINT8", "USMALLINT", "UINT16", "UINTEGER", "UINT32",
	"UBIGINT", "UINT64", "UHUGEINT", "UINT128")

var timestampTypes = set("TIMESTAMP", "DATETIME", "TIMESTAMP_US", "TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")

var floatTypes = set("FLOAT", "FLOAT4", "REAL", "DOUBLE", "FLOAT8", "DOUBLE PRECISION")

var zonedTypes = set("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE")

var textTypes = set("VARCHAR", "TEXT", "STRING", "CHAR", "BPCHAR")

// markStart begins the message of an error that one of rbt's own expressions
// raises; the parts behind it are separated by markSep. No text of a user's
// SQL is likely to begin so, and nothing happens if it does but a message
// without a place.
const (
	markStart = "\x1erbt-value\x1e"
	markSep   = "\x1e"
)

// conversion is the expression that turns the text column e into a value of a
// type, and raises an error for every text that the type cannot hold as it
// stands. A plain cast of DuckDB 1.5.6 would round '1.7' to an integer, cut a
// time from a date, and drop the offset of a timestamp without a word.
func (t *fileTable) conversion(e, column, typ string, d csvDialect) string {
	upper := strings.Join(strings.Fields(strings.ToUpper(typ)), " ")
	if textTypes[upper] {
		return e
	}
	source := e
	if d.decimal == "," && (integerTypes[upper] || decimalType.MatchString(upper) || upper == "DOUBLE" || upper == "FLOAT" || upper == "REAL") {
		source = fmt.Sprintf("replace(%s, ',', '.')", e)
	}
	var cast string
	switch {
	case upper == "DATE" && d.date != "":
		cast = fmt.Sprintf("CAST(try_strptime(%s, %s) AS DATE)", e, quoteText(d.date))
	case (timestampTypes[upper] || zonedTypes[upper]) && d.time != "":
		cast = fmt.Sprintf("CAST(try_strptime(%s, %s) AS %s)", e, quoteText(d.time), typ)
	default:
		cast = exactCast(source, upper, typ)
	}
	raise := "error(" + quoteText(markStart+t.name+markSep+column+markSep+typ+markSep) + " || " + e + ")"
	return fmt.Sprintf("CASE WHEN %s IS NULL THEN NULL ELSE coalesce(%s, %s) END", e, cast, raise)
}

// exactCast is the text e as a value of a type; NULL where the type cannot hold it
// as it stands.
func exactCast(e, upper, typ string) string {
	cast := fmt.Sprintf("TRY_CAST(%s AS %s)", e, typ)
	if odd, exact := exactness(e, upper, typ); odd != "" {
		return fmt.Sprintf("CASE WHEN %s THEN CASE WHEN %s THEN %s END ELSE %s END", odd, exact, cast, cast)
	}
	return cast
}

// exactness gives, for a type whose cast from text can lose something, a cheap
// condition under which that is possible (odd) and the condition under which
// nothing is lost all the same (exact). Both are "" where nothing can be lost.
func exactness(e, upper, typ string) (odd, exact string) {
	fraction := fmt.Sprintf("rtrim(split_part(trim(%s), '.', 2), '0')", e)
	exponent := fmt.Sprintf("contains(lower(%s), 'e')", e)
	switch {
	case integerTypes[upper]:
		// DuckDB 1.5.6 also takes 1_000, 0x1F and 0b11. What reads as its integer is
		// written is seen by one comparison, cheaper than a search in the text.
		odd = fmt.Sprintf("CAST(TRY_CAST(%[1]s AS %[2]s) AS VARCHAR) IS DISTINCT FROM %[1]s", e, typ)
		return odd, fmt.Sprintf(`regexp_full_match(%s, '\s*[+-]?[0-9]*(\.0*)?\s*')`, e)
	case decimalType.MatchString(upper):
		scale := 3 // of DECIMAL without arguments
		if m := decimalType.FindStringSubmatch(upper); m[1] != "" {
			scale, _ = strconv.Atoi(m[2])
		}
		odd = fmt.Sprintf("strlen(%[1]s) - instr(%[1]s, '.') > %[2]d AND instr(%[1]s, '.') > 0 OR contains(%[1]s, 'e') OR contains(%[1]s, 'E') OR contains(%[1]s, '_')", e, scale)
		return odd, fmt.Sprintf("NOT %s AND NOT contains(%s, '_') AND strlen(%s) <= %d", exponent, e, fraction, scale)
	case floatTypes[upper]:
		// DuckDB 1.5.6 takes 1_000 here too, and makes a number beyond the range infinite.
		odd = fmt.Sprintf("NOT isfinite(TRY_CAST(%[1]s AS %[2]s)) OR contains(%[1]s, '_')", e, typ)
		return odd, fmt.Sprintf("NOT contains(%[1]s, '_') AND (contains(lower(%[1]s), 'inf') OR contains(lower(%[1]s), 'nan'))", e)
	case upper == "DATE":
		return fmt.Sprintf("strlen(%s) > 10", e),
			fmt.Sprintf("TRY_CAST(%[1]s AS TIMESTAMP) = CAST(TRY_CAST(%[1]s AS DATE) AS TIMESTAMP)", e)
	case timestampTypes[upper]:
		digits := fractionDigits(upper)
		// A text that is longer than date, time and so many digits may hold more
		// of them, or an offset; that of a shorter one stands behind the date.
		odd = fmt.Sprintf("strlen(%[1]s) > %[2]d OR contains(substr(%[1]s, 11), '+') OR contains(substr(%[1]s, 11), '-')", e, 19+min(digits, 1)+digits)
		return odd, fmt.Sprintf(`regexp_full_match(trim(%s), '[0-9]+-[0-9]+-[0-9]+([ T][0-9:]+(\.[0-9]{0,%d}0*)?)?( ?([+-]00(:?00)?|[Zz]|UTC))?')`, e, digits)
	case upper == "TIME":
		return fmt.Sprintf("strlen(%s) > 15", e), fmt.Sprintf(`NOT regexp_matches(%s, '\.[0-9]{6}[0-9]*[1-9]')`, e)
	case zonedTypes[upper]:
		return fmt.Sprintf("strlen(%s) > 26", e), fmt.Sprintf(`NOT regexp_matches(%s, '\.[0-9]{6}[0-9]*[1-9]')`, e)
	}
	return "", ""
}

// fractionDigits is how many digits of a second a timestamp type holds.
func fractionDigits(upper string) int {
	switch upper {
	case "TIMESTAMP_S":
		return 0
	case "TIMESTAMP_MS":
		return 3
	case "TIMESTAMP_NS":
		return 9
	}
	return 6
}
