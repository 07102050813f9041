package engine

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"rbt/internal/lake"
)

// proof is how the footers of files can show that no row violates an assertion,
// so that no row need be read. It never shows that one does.
type proof struct {
	column lake.Column
	// set: the rows looked at are those whose column is not NULL.
	set bool
	// nulls: the violations are the NULLs of the column, whose number the
	// footers may know.
	nulls bool
	// holds reports whether the values can only pass; nil where only NULLs count.
	holds func(facts) bool
	// rows is holds for the number of rows.
	rows func(int64) bool
	// keys are the columns of a key that must be unique.
	keys []lake.Column
}

// proof gives how the assertion can be shown to hold; nil where only its query
// tells. A where is seen by no footer.
func (a assertion) proof(set bool) *proof {
	if a.test.Kind == "row_count" && a.test.Where == "" && a.test.Args.EqualTo == "" {
		return &proof{rows: a.rowsHold}
	}
	if a.test.Kind == "unique" {
		return &proof{keys: a.columns, set: set && len(a.columns) == 1 && a.test.Where == "", column: a.columns[0]}
	}
	if len(a.columns) != 1 || a.test.Where != "" {
		return nil
	}
	p := &proof{column: a.columns[0], set: set}
	switch a.test.Kind {
	case "not_null":
		p.nulls = true
	case "range":
		p.holds = a.unlessFailNulls(a.rangeHolds)
	case "accepted_values":
		p.holds = a.unlessFailNulls(a.acceptedHold)
	case "not_constant":
		p.holds = a.unlessFailNulls(a.differs)
	}
	return p
}

// unlessFailNulls adds to a proof about values that there is no NULL where one
// would be a violation.
func (a assertion) unlessFailNulls(holds func(facts) bool) func(facts) bool {
	if !a.test.FailNulls {
		return holds
	}
	return func(f facts) bool { return f.counted && f.nulls == 0 && holds(f) }
}

// rangeHolds reports whether least and greatest value are within the range.
func (a assertion) rangeHolds(f facts) bool {
	if !f.bounded {
		return false
	}
	if f.low == nil {
		return true // no value at all
	}
	args := a.test.Args
	within := func(text *string, exclusive bool, value any, sign int) bool {
		if text == nil {
			return true
		}
		c, ok := compareToText(value, *text, a.columns[0].Type)
		return ok && (c*sign > 0 || c == 0 && !exclusive)
	}
	return within(args.Min, args.ExclusiveMin, f.low, 1) && within(args.Max, args.ExclusiveMax, f.high, -1)
}

// compareToText orders a value of a column against a bound in YAML spelling as
// the query would; false where only the engine can tell.
func compareToText(value any, text, typ string) (int, bool) {
	switch v := value.(type) {
	case *big.Int:
		bound, ok := digitsOf(text, typ, false)
		if !ok {
			return 0, false
		}
		return new(big.Rat).SetInt(v).Cmp(bound), true
	case float64:
		if !numberText.MatchString(text) {
			return 0, false
		}
		bits := 64
		if typ == "FLOAT" {
			bits = 32
		}
		bound, err := strconv.ParseFloat(text, bits)
		if err != nil || math.IsInf(bound, 0) || !isFloat(typ) {
			return 0, false
		}
		return compareValues(v, bound), true
	case string:
		return strings.Compare(v, text), typ == "VARCHAR"
	}
	return 0, false
}

// digitsOf gives a value in YAML spelling in the unit in which a Parquet file
// holds the type: of a decimal its digits, of a date days, of a timestamp
// microseconds. Of whole only what the type can hold is a value.
func digitsOf(text, typ string, whole bool) (*big.Rat, bool) {
	out := new(big.Rat)
	switch {
	case isExact(typ):
		if !numberText.MatchString(text) {
			return nil, false
		}
		if _, ok := out.SetString(text); !ok {
			return nil, false
		}
		if !isInteger(typ) {
			scale := int64(decimalScale(typ))
			out.Mul(out, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)))
		}
	case typ == "DATE":
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return nil, false
		}
		out.SetInt64(t.Unix() / 86400)
	case typ == "TIMESTAMP" && len(text) <= len("2006-01-02 15:04:05.123456"):
		t, err := time.Parse("2006-01-02 15:04:05", text)
		if err != nil {
			if t, err = time.Parse(time.DateOnly, text); err != nil {
				return nil, false
			}
		}
		out.SetInt64(t.UnixMicro())
	default:
		return nil, false
	}
	return out, !whole || out.IsInt()
}

// acceptedHold reports whether every value that the column can have is in the
// list: each whole number between least and greatest, or each in the
// dictionaries.
func (a assertion) acceptedHold(f facts) bool {
	if f.bounded && f.low == nil {
		return true
	}
	typ, list := a.columns[0].Type, map[string]bool{}
	for _, v := range a.test.Args.Values {
		if v == nil {
			continue
		}
		if typ == "VARCHAR" {
			list[*v] = true
		} else if digits, ok := digitsOf(*v, typ, true); ok {
			list[digits.Num().String()] = true
		}
	}
	if low, ok := f.low.(*big.Int); ok && f.bounded && isInteger(typ) {
		if span := new(big.Int).Sub(f.high.(*big.Int), low); span.IsInt64() && span.Int64() < int64(len(list)) {
			for n := new(big.Int).Set(low); ; n.Add(n, big.NewInt(1)) {
				if !list[n.String()] {
					break
				}
				if n.Cmp(f.high.(*big.Int)) == 0 {
					return true
				}
			}
		}
	}
	values, ok := f.distinct(len(list))
	return ok && !slices.ContainsFunc(values, func(v any) bool { return !list[fmt.Sprint(v)] })
}

// differs reports whether there are two values. Texts in statistics may be cut.
func (a assertion) differs(f facts) bool {
	if _, text := f.low.(string); text || !f.bounded || f.low == nil {
		return false
	}
	return compareValues(f.low, f.high) != 0
}

// rowsHold reports whether a number of rows is as row_count wants it.
func (a assertion) rowsHold(rows int64) bool {
	n := big.NewInt(rows)
	right := func(text *string, ok func(int) bool) bool {
		if text == nil {
			return true
		}
		limit, whole := new(big.Int).SetString(*text, 10)
		return whole && ok(n.Cmp(limit))
	}
	args := a.test.Args
	return right(args.Min, func(c int) bool { return c >= 0 }) && right(args.Max, func(c int) bool { return c <= 0 }) &&
		right(args.Equal, func(c int) bool { return c == 0 })
}

// maxBitmap is the number of bits, one for every key that there can be, up to
// which repeats are found by a bitmap of 64 MB.
const maxBitmap = 1 << 29

// sparseKeys is how many keys there may be for every row: beyond that a bitmap
// takes more memory than the hash table that it stands in for.
const sparseKeys = 64

// distinctQuery is a query that gives the number of different keys, of rows with
// a key, and of all rows, by setting a bit for each key: some eight times cheaper
// than grouping, in memory that does not grow with the rows. It needs whole
// numbers between bounds that are known; false where they are not, or too far
// apart.
func distinctQuery(from string, keys []lake.Column, known func(lake.Column) facts) (string, bool) {
	bits, number := big.NewInt(1), ""
	for _, key := range keys {
		f := known(key)
		low, ok := f.low.(*big.Int)
		if !ok || !f.bounded || !isInteger(key.Type) || !low.IsInt64() || !f.high.(*big.Int).IsInt64() {
			return "", false
		}
		span := new(big.Int).Sub(f.high.(*big.Int), low)
		span.Add(span, big.NewInt(1))
		if bits.Mul(bits, span); bits.Cmp(big.NewInt(min(maxBitmap, sparseKeys*f.rows+1<<20))) > 0 {
			return "", false
		}
		// Both are BIGINTs of a difference below 2^29.
		term := fmt.Sprintf("(CAST(%s AS BIGINT) - CAST(%s AS BIGINT))", quoteIdent(key.Name), quoteText(low.String()))
		if number == "" {
			number = term
		} else {
			number = fmt.Sprintf("(%s * %s + %s)", number, span, term)
		}
	}
	return fmt.Sprintf("SELECT CAST(coalesce(bit_count(bitstring_agg(k, 0, %s)), 0) AS BIGINT), count(k), count(*) FROM (SELECT %s AS k FROM %s)",
		new(big.Int).Sub(bits, big.NewInt(1)), number, from), true
}
