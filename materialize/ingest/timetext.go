package ingest

// Dates and times are read by hand: time.Parse takes many layouts that are no
// ISO 8601, and costs ten times as much.

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
)

// daysFromCivil counts days since 1970-01-01 in the proleptic Gregorian
// calendar.
func daysFromCivil(y, m, d int) int64 {
	if m <= 2 {
		y--
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yoe := y - era*400
	mp := (m + 9) % 12
	doy := (153*mp+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return int64(era)*146097 + int64(doe) - 719468
}

func daysIn(y, m int) int {
	switch m {
	case 2:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// digits reads exactly n digits at the start of s.
func digits(s []byte, n int) (v int, ok bool) {
	if len(s) < n {
		return 0, false
	}
	for _, c := range s[:n] {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	return v, true
}

// parseDate reads YYYY-MM-DD and returns the rest.
func parseDate(s []byte) (days int64, rest []byte, ok bool) {
	if len(s) < 10 || s[4] != '-' || s[7] != '-' {
		return 0, s, false
	}
	y, ok1 := digits(s, 4)
	m, ok2 := digits(s[5:], 2)
	d, ok3 := digits(s[8:], 2)
	if !ok1 || !ok2 || !ok3 || y < 1 || m < 1 || m > 12 || d < 1 || d > daysIn(y, m) {
		return 0, s, false
	}
	return daysFromCivil(y, m, d), s[10:], true
}

// parseClock reads HH:MM[:SS[.ffffff]] and returns the rest. Digits beyond
// microseconds are taken only where they are zeros: nothing is rounded.
func parseClock(s []byte) (micros int64, rest []byte, ok bool) {
	if len(s) < 5 || s[2] != ':' {
		return 0, s, false
	}
	h, ok1 := digits(s, 2)
	m, ok2 := digits(s[3:], 2)
	if !ok1 || !ok2 || h > 23 || m > 59 {
		return 0, s, false
	}
	micros = int64(h*60+m) * 60 * microsPerSecond
	s = s[5:]
	if len(s) == 0 || s[0] != ':' {
		return micros, s, true
	}
	sec, ok := digits(s[1:], 2)
	if !ok || sec > 59 {
		return 0, s, false
	}
	micros += int64(sec) * microsPerSecond
	s = s[3:]
	if len(s) == 0 || s[0] != '.' {
		return micros, s, true
	}
	unit := int64(microsPerSecond / 10)
	i := 1
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if unit == 0 && s[i] != '0' {
			return 0, s, false
		}
		micros += int64(s[i]-'0') * unit
		unit /= 10
	}
	return micros, s[i:], i > 1
}

// parseOffset reads Z, +HH, +HHMM or +HH:MM to the end of s.
func parseOffset(s []byte) (micros int64, ok bool) {
	if len(s) == 1 && (s[0] == 'Z' || s[0] == 'z') {
		return 0, true
	}
	if len(s) < 3 || (s[0] != '+' && s[0] != '-') {
		return 0, false
	}
	h, ok := digits(s[1:], 2)
	if !ok {
		return 0, false
	}
	m := 0
	if rest := s[3:]; len(rest) > 0 {
		if rest[0] == ':' {
			rest = rest[1:]
		}
		if m, ok = digits(rest, 2); !ok || len(rest) != 2 {
			return 0, false
		}
	}
	if h > 23 || m > 59 {
		return 0, false
	}
	micros = int64(h*60+m) * 60 * microsPerSecond
	if s[0] == '-' {
		micros = -micros
	}
	return micros, true
}

// parseTimestamp reads a date and time with 'T' or a space between. zoned says
// whether an offset has to be there; without one it must not be, since
// dropping or assuming one would move the time.
func parseTimestamp(s []byte, zoned bool) (micros int64, ok bool) {
	days, rest, ok := parseDate(s)
	if !ok {
		return 0, false
	}
	micros = days * microsPerDay
	if len(rest) == 0 {
		return micros, !zoned
	}
	if rest[0] != 'T' && rest[0] != ' ' && rest[0] != 't' {
		return 0, false
	}
	clock, rest, ok := parseClock(rest[1:])
	if !ok {
		return 0, false
	}
	micros += clock
	if !zoned {
		return micros, len(rest) == 0
	}
	if len(rest) > 0 && rest[0] == ' ' {
		rest = rest[1:]
	}
	off, ok := parseOffset(rest)
	return micros - off, ok
}

// parseUUID reads the form 8-4-4-4-12.
func parseUUID(s []byte, dst *[16]byte) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	n := 0
	for i := 0; i < 36; i += 2 {
		if s[i] == '-' {
			i++
		}
		hi, ok1 := hexDigit(s[i])
		lo, ok2 := hexDigit(s[i+1])
		if !ok1 || !ok2 {
			return false
		}
		dst[n] = hi<<4 | lo
		n++
	}
	return true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
