package main

import "testing"

func TestHideCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://u:p4ss@h/db":               "postgres://u:*****@h/db",
		"postgres://u@h:5432/db":               "postgres://u@h:5432/db",
		"s3://b/x?a=1&X-Amz-Signature=abc":     "s3://b/x?a=1&X-Amz-Signature=*****",
		"https://h/x?sig=abc&b=1 and y":        "https://h/x?sig=*****&b=1 and y",
		"https://h/x?a=1&access_token=t0k'":    "https://h/x?a=1&access_token=*****'",
		"host=h password=p4ss user=u":          "host=h password=***** user=u",
		"PWD=p4ss;x":                           "PWD=*****;x",
		"where token = 1 and password is null": "where token = 1 and password is null",
		"models/a.sql:1:1 a://b c:d@e":         "models/a.sql:1:1 a://b c:d@e",
	} {
		if got := hideCredentials(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
