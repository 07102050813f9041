package engine

import (
	"context"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// numberText keeps exponents short, so that no value makes a number of a
// million digits.
var numberText = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$`)

// dateText is how a date begins, or one of the words that DuckDB takes for one.
var dateText = regexp.MustCompile(`^(?i)(\d{1,6}[-/]\d{1,2}[-/]\d{1,2}.*|-?infinity|epoch)$`)

// offsetText is how a time ends that says how far it is from UTC.
var offsetText = regexp.MustCompile(`:\d{2}(?:\.\d+)?\s*[+-](\d{1,2}(?::?\d{2})?)$`)

// hasOffset reports whether a time is said to be one of another zone than UTC,
// which DuckDB drops where the type has no zone.
func hasOffset(text string) bool {
	m := offsetText.FindStringSubmatch(text)
	return m != nil && strings.Trim(m[1], "0:") != ""
}

func isInteger(typ string) bool { return integerTypes[typ] }
func isExact(typ string) bool   { return isInteger(typ) || decimalType.MatchString(typ) }
func isFloat(typ string) bool   { return typ == "DOUBLE" || typ == "FLOAT" }

func isTemporal(typ string) bool {
	return typ == "DATE" || strings.HasPrefix(typ, "TIMESTAMP") || strings.HasPrefix(typ, "TIME")
}

// exactNumber is a number in YAML spelling as SQL that loses nothing: HUGEINT
// for a whole number, else a decimal as wide as needed.
func exactNumber(text string) (literal string, whole, ok bool) {
	if !numberText.MatchString(text) {
		return "", false, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return "", false, false
	}
	if r.IsInt() {
		return quoteText(r.Num().String()) + "::HUGEINT", true, r.Num().BitLen() <= 127
	}
	digits := strings.TrimRight(r.FloatString(37), "0")
	back, _ := new(big.Rat).SetString(digits)
	scale := len(digits) - strings.IndexByte(digits, '.') - 1
	if back.Cmp(r) != 0 || len(digits) > 38 {
		return "", false, false
	}
	return fmt.Sprintf("%s::DECIMAL(38,%d)", quoteText(digits), scale), false, true
}

// literal is a value in YAML spelling as the column's type; "" for a number beyond
// all that the type has, which no row can be. What cannot be one of the type at all
// is a mistake and not a failure.
func (a assertion) literal(text string) (string, error) {
	typ := a.columns[0].Type
	switch {
	case typ == "" || typ == "VARCHAR":
		return quoteText(text), nil
	case isExact(typ):
		digits, ok := digitsOf(text, typ, true)
		if !ok {
			return "", a.wrongValue(text)
		}
		return exactLiteral(digits.Num(), typ), nil
	case isFloat(typ):
		if !numberText.MatchString(text) && !slices.Contains([]string{"nan", "inf", "-inf", "infinity", "-infinity"}, strings.ToLower(text)) {
			return "", a.wrongValue(text)
		}
	case typ == "DATE" || strings.HasPrefix(typ, "TIMESTAMP"):
		if !dateText.MatchString(text) || typ != "TIMESTAMP WITH TIME ZONE" && hasOffset(text) {
			return "", a.wrongValue(text)
		}
	case typ == "BOOLEAN":
		if !slices.Contains([]string{"true", "false", "t", "f", "yes", "no", "y", "n", "1", "0"}, strings.ToLower(text)) {
			return "", a.wrongValue(text)
		}
	}
	return "CAST(" + quoteText(text) + " AS " + typ + ")", nil
}

// exactLiteral is a number of a type of whole or decimal numbers, given in the unit
// of its last digit; "" where it is beyond the type.
func exactLiteral(n *big.Int, typ string) string {
	var text string
	var fits bool
	switch {
	case typ == "UHUGEINT":
		text, fits = n.String(), n.Sign() >= 0 && n.BitLen() <= 128
	case isInteger(typ):
		bits := n.BitLen()
		if n.Sign() < 0 {
			bits = new(big.Int).Not(n).BitLen()
		}
		text, typ, fits = n.String(), "HUGEINT", bits <= 127
	default:
		scale := decimalScale(typ)
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		text, fits = new(big.Rat).SetFrac(n, unit).FloatString(scale), len(new(big.Int).Abs(n).String()) <= decimalWidth(typ)
	}
	if !fits {
		return ""
	}
	return quoteText(text) + "::" + typ
}

// decimalWidth is the number of digits of a decimal type.
func decimalWidth(typ string) int {
	width := 18 // of DECIMAL without arguments
	if m := decimalType.FindStringSubmatch(typ); m[1] != "" {
		width, _ = strconv.Atoi(m[1])
	}
	return width
}

// beyond is the condition that a value lies below the least bound, or above the
// greatest. Unlike a value a bound need not be one that the column can hold (at
// least 0.5, of an integer): the condition is about the next one that it can,
// since DuckDB 1.5.6 rounds numbers to compare them with those of another type, or
// ends the query.
func (a assertion) beyond(text string, least, exclusive bool) (string, error) {
	typ, literal := a.columns[0].Type, ""
	if isExact(typ) {
		digits, ok := digitsOf(text, typ, false)
		if !ok {
			return "", a.wrongValue(text)
		}
		n := new(big.Int).Div(digits.Num(), digits.Denom())
		if !digits.IsInt() {
			exclusive = false
			if least {
				n.Add(n, big.NewInt(1))
			}
		}
		if literal = exactLiteral(n, typ); literal == "" {
			return strconv.FormatBool((n.Sign() > 0) == least), nil
		}
	} else {
		var err error
		if literal, err = a.literal(text); err != nil {
			return "", err
		}
	}
	op := ">"
	if least {
		op = "<"
	}
	if exclusive {
		op += "="
	}
	return a.column() + " " + op + " " + literal, nil
}

// step is what is added to a value to have the next; "" for a number beyond all
// that the type has.
func (a assertion) step(text string) (string, error) {
	typ := a.columns[0].Type
	switch {
	case isTemporal(typ):
		if numberText.MatchString(text) {
			return "", diag.Errorf(diag.TestArgument, a.test.Pos, "sequence: %s is a %s, and its step %q has no unit", a.label(), typ, text).
				WithHint("write the step as an interval, as `step: 1 day`")
		}
		return "CAST(" + quoteText(text) + " AS INTERVAL)", nil
	case isExact(typ):
		digits, ok := digitsOf(text, typ, true)
		if !ok {
			return "", a.wrongValue(text)
		}
		return exactLiteral(digits.Num(), typ), nil
	case typ != "" && !isFloat(typ):
		return "", a.wrongType("only numbers, dates and times have steps", "test another column, or cast it in the SQL of the model")
	}
	literal, _, ok := exactNumber(text)
	if !ok {
		return "", a.wrongValue(text)
	}
	return literal, nil
}

// wrongType says that the column is none of those that the test is for.
func (a assertion) wrongType(why, hint string) error {
	return diag.Errorf(diag.TestArgument, a.test.Pos, "%s: %s has the type %s, and %s", a.test.Kind, a.label(), a.columns[0].Type, why).WithHint("%s", hint)
}

// checkValues finds values of a test that their column's type cannot hold, where
// only the engine can tell.
func (s *session) checkValues(ctx context.Context, t *project.Test, columns []lake.Column) error {
	texts := slices.Clone(t.Args.Values)
	if t.Kind == "range" {
		texts = []*string{t.Args.Min, t.Args.Max}
	}
	if len(t.Columns) != 1 || len(texts) == 0 {
		return nil
	}
	column, err := findColumn(t, t.Columns[0], columns)
	if typ := column.Type; err != nil || typ == "" || typ == "VARCHAR" || typ == "BOOLEAN" || isExact(typ) || isFloat(typ) {
		return err
	}
	var asked, list []string
	for _, text := range texts {
		if text == nil {
			continue
		}
		if _, known := digitsOf(*text, column.Type, false); !known {
			asked, list = append(asked, *text), append(list, "TRY_CAST("+quoteText(*text)+" AS "+column.Type+") IS NULL")
		}
	}
	if len(list) == 0 {
		return nil
	}
	wrong := -1
	err = s.Query(ctx, "SELECT list_position(["+strings.Join(list, ", ")+"], true)", func(v []any) error {
		if i, ok := v[0].(int32); ok {
			wrong = int(i) - 1
		}
		return nil
	})
	if err == nil && wrong >= 0 {
		err = assertion{test: t, columns: []lake.Column{column}}.wrongValue(asked[wrong])
	}
	return err
}

// comparedAs is a word for types whose values can be compared with each other; "" for
// those that may be compared with others too.
func comparedAs(typ string) string {
	switch {
	case strings.HasSuffix(typ, "]") || strings.HasPrefix(typ, "STRUCT(") || strings.HasPrefix(typ, "MAP("):
		return "nested"
	case isExact(typ) || isFloat(typ) || typ == "BOOLEAN":
		return "number"
	case typ == "DATE" || strings.HasPrefix(typ, "TIMESTAMP"):
		return "date"
	case strings.HasPrefix(typ, "TIME"):
		return "time"
	case typ == "INTERVAL" || typ == "UUID" || typ == "BLOB":
		return typ
	}
	return ""
}

// comparable reports two columns of a relationship that cannot be compared. DuckDB
// 1.5.6 binds a comparison of most types, and fails when the first row comes.
func (a assertion) comparable() error {
	own, other := comparedAs(a.columns[0].Type), comparedAs(a.field)
	if own == "" || other == "" || own == other {
		return nil
	}
	args := a.test.Args
	return a.wrongType(fmt.Sprintf("%s of %s the type %s: they cannot be compared", args.Field, outputName(args.Ref.Node, args.Ref.Output), a.field), "cast one of them in the SQL of its model")
}

func (a assertion) wrongValue(text string) error {
	return diag.Errorf(diag.TestArgument, a.test.Pos, "%s: %q is no value of the type %s, which %s has", a.test.Kind, text, a.columns[0].Type, a.label())
}
