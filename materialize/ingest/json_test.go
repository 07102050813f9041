package ingest

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// sharedDir is where the public test data lies; a test that needs it says so
// and is skipped where it is absent.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("RBT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: the shared test data is not at %s (set RBT_SHARED)", dir)
	}
	return dir
}

func TestParserAgainstJSONSuite(t *testing.T) {
	dir := filepath.Join(sharedDir(t), "data", "json-suite", "test_parsing")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	count := map[byte]int{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fault, ok := validJSON(text)
		switch kind := f.Name()[0]; kind {
		case 'y':
			if !ok {
				t.Errorf("%s refused: %s: %s", f.Name(), fault.reason, fault.msg)
			}
			count[kind]++
		case 'n':
			if ok {
				t.Errorf("%s accepted", f.Name())
			}
			if !ok && fault.reason == "" {
				t.Errorf("%s refused without a reason", f.Name())
			}
			count[kind]++
		}
	}
	if count['y'] < 90 || count['n'] < 180 {
		t.Errorf("read %d y_ and %d n_ files only", count['y'], count['n'])
	}
}

func TestValidJSONAgreesWithStandardLibrary(t *testing.T) {
	pieces := []string{`{`, `}`, `[`, `]`, `,`, `:`, `"a"`, `"b\n"`, `"\u00e9"`, `1`, `-0`, `1.5e3`, `true`, `false`, `null`, ` `, "\n", `"`, `\`, `0`, `.`, "\x01", "é"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12).Draw(t, "pieces"), "")
		_, got := validJSON([]byte(text))
		if want := json.Valid([]byte(text)); got != want {
			t.Fatalf("%q: got %v, the standard library says %v", text, got, want)
		}
	})
}

func FuzzValidJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":null}]}`, `"\ud83d\ude00"`, `-0.0e-1`, `[[[[`, "\xff", `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, got := validJSON(text)
		if !got && json.Valid(text) && utf8.Valid(text) && !strings.Contains(string(text), `\u`) && strings.Count(string(text), "[")+strings.Count(string(text), "{") < maxDepth {
			t.Fatalf("%q refused", text)
		}
		if got && !json.Valid(text) {
			t.Fatalf("%q accepted", text)
		}
	})
}

func TestDeepNestingIsRefusedNotFatal(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		fault, ok := validJSON([]byte(strings.Repeat(open, 100_000)))
		if ok || fault.reason != reasonDepth {
			t.Errorf("%q: got %v %v", open, ok, fault.reason)
		}
	}
	text := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	if _, ok := validJSON([]byte(text)); !ok {
		t.Error("600 arrays refused")
	}
}

func TestNumbersAreExact(t *testing.T) {
	digits := rapid.StringMatching(`-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		lit := digits.Draw(t, "lit")
		p := parser{}
		after := rapid.SampledFrom([]string{"", ",", "}]}\n{\"a\":123456789}", " 12345678", ":9:9:9:9:9:9", "/9/9/9/9/9/9", "\xff9\xff9\xff9\xff9\xff9"}).Draw(t, "after")
		p.reset([]byte(lit+after), true)
		n, ok := p.number()
		if !ok || p.i != len(lit) {
			t.Fatalf("%s not read whole", lit)
		}
		want, wantErr := strconv.ParseFloat(lit, 64)
		got, exact, over := n.double()
		if over != (wantErr != nil) || (!over && got != want) {
			t.Fatalf("%s: got %v over=%v, want %v", lit, got, over, want)
		}
		rat, _ := new(big.Rat).SetString(lit)
		if !over && n.int && exact != (new(big.Rat).SetFloat64(got).Cmp(rat) == 0) && new(big.Int).Abs(rat.Num()).BitLen() < 120 {
			t.Fatalf("%s: exact is %v for %v", lit, exact, got)
		}
		scale := rapid.IntRange(0, 20).Draw(t, "scale")
		scaled := new(big.Rat).Mul(new(big.Rat).Abs(rat), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		hi, lo, ok := n.unscaled(scale)
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
		fits := scaled.IsInt() && scaled.Num().Cmp(limit) < 0
		ok = ok && fitsPrecision(hi, lo, 38)
		if ok != fits {
			t.Fatalf("%s * 10^%d: fits %v, want %v", lit, scale, ok, fits)
		}
		v := new(big.Int).Add(new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64), new(big.Int).SetUint64(lo))
		if ok && v.Cmp(scaled.Num()) != 0 {
			t.Fatalf("%s * 10^%d = %v, got %v", lit, scale, scaled, v)
		}
	})
}

func TestCanonicalNumber(t *testing.T) {
	for _, same := range [][]string{{"1", "1.0", "1e0", "10e-1", "0.1E1"}, {"0", "0.0", "0e5"}, {"-0", "-0.0"}, {"-120", "-1.2e2"}, {"9300000000000000001", "9300000000000000001.0"}} {
		want := string(appendCanonicalNumber(nil, []byte(same[0])))
		for _, lit := range same {
			if got := string(appendCanonicalNumber(nil, []byte(lit))); got != want {
				t.Errorf("%s: %s, want %s", lit, got, want)
			}
		}
	}
}
