package project

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// modulesObject gives what templates may use of Python's modules: times of
// datetime, all in UTC, and patterns of re.
func modulesObject() *object {
	datetime := &callableObject{object: object{name: "datetime", attrs: map[string]any{
		"now":           jinja.Func(callNow),
		"utcnow":        jinja.Func(callNow),
		"today":         jinja.Func(callNow),
		"strptime":      jinja.Func(callStrptime),
		"fromisoformat": jinja.Func(callFromISO),
		"fromtimestamp": jinja.Func(callFromTimestamp),
	}}, call: callDatetime}
	date := &callableObject{object: object{name: "date", attrs: map[string]any{
		"today": jinja.Func(func(c *jinja.Call) (any, error) {
			now := seen(c).now("modules.datetime.date.today")
			return day{midnight(now)}, nil
		}),
		"fromisoformat": jinja.Func(func(c *jinja.Call) (any, error) {
			v, err := callFromISO(c)
			if err != nil {
				return nil, err
			}
			return day{midnight(v.(moment).t)}, nil
		}),
	}}, call: callDate}
	return &object{name: "modules", lacks: "modules has datetime and re; all times are in UTC", attrs: map[string]any{
		"datetime": &object{name: "datetime", attrs: map[string]any{
			"datetime":  datetime,
			"date":      date,
			"timedelta": jinja.Func(callTimedelta),
		}},
		"re": reObject(),
	}}
}

// callableObject is an object that can be called, as Python's classes are.
type callableObject struct {
	object
	call func(*jinja.Call) (any, error)
}

// Call makes a value of the class.
func (o *callableObject) Call(c *jinja.Call) (any, error) { return o.call(c) }

// now gives the time of the run and notes that the text depends on it.
func (r *rendering) now(by string) time.Time {
	if r.volatile == "" {
		r.volatile = by
	}
	return r.o.RunStartedAt.UTC().Round(0)
}

func callNow(c *jinja.Call) (any, error) {
	return moment{t: seen(c).now("modules.datetime.datetime.now")}, nil
}

func midnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// numbers gives whole numbers from arguments and named ones, in order; absent
// ones keep their default.
func numbers(c *jinja.Call, names []string, def []int) ([]int, error) {
	out := append([]int(nil), def...)
	if len(c.Args) > len(names) {
		return nil, badCall(c, "it takes at most %d numbers", len(names))
	}
	set := func(i int, v any) error {
		n, ok := v.(int64)
		if !ok || n > 1e9 || n < -1e9 {
			return badCall(c, "%s must be a whole number", names[i])
		}
		out[i] = int(n)
		return nil
	}
	for i, a := range c.Args {
		if err := set(i, a); err != nil {
			return nil, err
		}
	}
	for i, name := range names {
		if v, ok := c.Kwarg(name); ok {
			if err := set(i, v); err != nil {
				return nil, err
			}
		}
	}
	return out, kwargsOnly(c, "it", slices.Concat(names, []string{"tzinfo"})...)
}

var clockParts = []string{"year", "month", "day", "hour", "minute", "second", "microsecond"}

func callDatetime(c *jinja.Call) (any, error) {
	n, err := numbers(c, clockParts, []int{0, 0, 0, 0, 0, 0, 0})
	if err != nil {
		return nil, err
	}
	return exactTime(c, n)
}

// exactTime refuses the 31st of April and the like, which Go would move.
func exactTime(c *jinja.Call, n []int) (moment, error) {
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1000, time.UTC)
	if n[0] < 1 || n[0] > 9999 || t.Month() != time.Month(n[1]) || t.Day() != n[2] || t.Hour() != n[3] || t.Minute() != n[4] || t.Second() != n[5] {
		return moment{}, badCall(c, "there is no such time")
	}
	return moment{t: t}, nil
}

func callDate(c *jinja.Call) (any, error) {
	n, err := numbers(c, clockParts[:3], []int{0, 0, 0})
	if err != nil {
		return nil, err
	}
	v, err := exactTime(c, append(n, 0, 0, 0, 0))
	if err != nil {
		return nil, err
	}
	return day{v.t}, nil
}

func callFromTimestamp(c *jinja.Call) (any, error) {
	if len(c.Args) == 0 {
		return nil, badCall(c, "fromtimestamp takes seconds")
	}
	n, ok := c.Args[0].(int64)
	if !ok {
		return nil, badCall(c, "fromtimestamp takes a whole number of seconds")
	}
	return moment{t: time.Unix(n, 0).UTC()}, nil
}

// isoLayouts are the forms that fromisoformat takes.
var isoLayouts = []string{"2006-01-02T15:04:05.999999Z07:00", "2006-01-02 15:04:05.999999Z07:00", "2006-01-02T15:04:05.999999",
	"2006-01-02 15:04:05.999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}

func callFromISO(c *jinja.Call) (any, error) {
	if len(c.Args) != 1 {
		return nil, badCall(c, "fromisoformat takes a text")
	}
	text, _ := textArg(c.Args[0])
	for _, layout := range isoLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return moment{t.UTC(), strings.HasSuffix(layout, "Z07:00")}, nil
		}
	}
	return nil, badCall(c, "%q is no time in ISO format", text)
}

func callStrptime(c *jinja.Call) (any, error) {
	if len(c.Args) != 2 {
		return nil, badCall(c, "strptime takes a text and a format")
	}
	text, ok1 := textArg(c.Args[0])
	format, ok2 := textArg(c.Args[1])
	if !ok1 || !ok2 {
		return nil, badCall(c, "strptime takes texts")
	}
	layout, bad := goLayout(format)
	if bad != "" {
		return nil, diag.Errorf(diag.TemplateUnsupported, c.Pos, "strptime does not know %s here", bad)
	}
	t, err := time.Parse(layout, text)
	if err != nil {
		return nil, badCall(c, "%q does not have the format %q", text, format)
	}
	return moment{t.UTC(), strings.Contains(layout, "-0700")}, nil
}

// goParts are the directives of strptime with the layout of Go that reads the
// same texts.
var goParts = map[byte]string{
	'Y': "2006", 'm': "1", 'd': "2", 'H': "15", 'M': "4", 'S': "5", 'f': "000000", 'y': "06", 'j': "002",
	'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'p': "PM", 'I': "3", 'z': "-0700", '%': "%",
}

func goLayout(format string) (layout, bad string) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		part, ok := goParts[format[i]]
		if !ok {
			return "", "%" + string(format[i])
		}
		if format[i] == 'f' && !strings.HasSuffix(b.String(), ".") {
			return "", "%f without a dot before it"
		}
		b.WriteString(part)
	}
	return b.String(), ""
}

// span is a duration: Python's timedelta.
type span struct{ d time.Duration }

// spanParts are the arguments of timedelta, in Python's order.
var spanParts = []struct {
	name string
	unit time.Duration
}{
	{"days", 24 * time.Hour}, {"seconds", time.Second}, {"microseconds", time.Microsecond}, {"milliseconds", time.Millisecond},
	{"minutes", time.Minute}, {"hours", time.Hour}, {"weeks", 7 * 24 * time.Hour},
}

func callTimedelta(c *jinja.Call) (any, error) {
	var sum time.Duration
	names := make([]string, len(spanParts))
	for i, part := range spanParts {
		names[i] = part.name
		v, ok := c.Kwarg(part.name)
		if !ok && i < len(c.Args) {
			v, ok = c.Args[i], true
		}
		if !ok {
			continue
		}
		var n float64
		switch v := v.(type) {
		case int64:
			n = float64(v)
		case float64:
			n = v
		default:
			return nil, badCall(c, "%s must be a number", part.name)
		}
		const limit = 200 * 365 * 24 * float64(time.Hour)
		if total := n * float64(part.unit); total > limit || total < -limit {
			return nil, badCall(c, "the span is longer than 200 years")
		}
		if whole, ok := v.(int64); ok {
			sum += time.Duration(whole) * part.unit
		} else {
			sum += time.Duration(n * float64(part.unit))
		}
	}
	return span{sum}, kwargsOnly(c, "timedelta", names...)
}

// parts gives days, seconds and microseconds as Python keeps them: only days may
// be negative.
func (s span) parts() (days, seconds, micros int64) {
	total := int64(s.d / time.Microsecond)
	const perDay = int64(24 * time.Hour / time.Microsecond)
	days = total / perDay
	rest := total % perDay
	if rest < 0 {
		days--
		rest += perDay
	}
	return days, rest / 1e6, rest % 1e6
}

// String prints as Python does: "1 day, 2:00:00".
func (s span) String() string {
	days, seconds, micros := s.parts()
	out := strconv.FormatInt(seconds/3600, 10) + ":" + pad2(int(seconds/60%60)) + ":" + pad2(int(seconds%60))
	if micros != 0 {
		out += "." + strings.Repeat("0", 6-len(strconv.FormatInt(micros, 10))) + strconv.FormatInt(micros, 10)
	}
	switch days {
	case 0:
		return out
	case 1, -1:
		return strconv.FormatInt(days, 10) + " day, " + out
	default:
		return strconv.FormatInt(days, 10) + " days, " + out
	}
}

// Attr gives days, seconds, microseconds and total_seconds.
func (s span) Attr(name string) (any, bool) {
	days, seconds, micros := s.parts()
	switch name {
	case "days":
		return days, true
	case "seconds":
		return seconds, true
	case "microseconds":
		return micros, true
	case "total_seconds":
		return jinja.Func(func(*jinja.Call) (any, error) { return s.d.Seconds(), nil }), true
	}
	return nil, false
}

func pad2(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}
