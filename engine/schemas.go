package engine

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// A source of many Parquet files grows by a file now and then, and a run that asks
// the footer of each which columns it has pays for all of them again. So what was
// found is kept, by the identity of the file: one that was written to or replaced
// since is looked into, and so is one that was changed just before.

// schemas remembers the columns of the Parquet files of sources between commands. It
// may be used by many at once; nil remembers nothing.
type schemas struct {
	now      func() time.Time
	settings map[string]string // of the engine, which may say how a file is read

	mu    sync.Mutex
	cache *answers[knownSchemas]
}

// knownSchemas is what is known of the files of one source.
type knownSchemas struct {
	Kinds [][]string `json:"kinds"` // columns, names and types in turn
	Files string     `json:"files"` // base64; of each file its number, and the number of its kind
}

const (
	schemasPrefix = "schemas-"
	// schemasFormat counts up when columns of files are told otherwise.
	schemasFormat = 1
	// knownKindsMost is the number of kinds of files that the text has room for; a
	// source of more is looked into each time.
	knownKindsMost = 255
	fileNumberSize = 16
)

func newSchemas(p *project.Project, version string, now func() time.Time) *schemas {
	return &schemas{now: now, settings: p.Engine.Settings, cache: newAnswers[knownSchemas](p.TargetDir, schemasPrefix, schemasFormat, version, p.Mask)}
}

// close keeps what is known for the next command. That it cannot be written costs
// that command time, and nothing else.
func (s *schemas) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.cache.save()
}

func (s *schemas) key(table string) string {
	text, err := json.Marshal([]any{table, s.settings})
	if err != nil {
		return ""
	}
	return parseKey(string(text))
}

// fileNumber is a hash of the name and identity of a file.
type fileNumber [fileNumberSize]byte

// recalled is what is known of the files of a table while it is described.
type recalled struct {
	numbers []fileNumber // by file; zero of one that is not remembered
	columns map[fileNumber][]lake.Column
}

// recall takes the identities of files, before anybody reads them, and gives what is
// known of those that are as they were.
func (s *schemas) recall(table string, files []string) *recalled {
	r := &recalled{numbers: make([]fileNumber, len(files)), columns: map[fileNumber][]lake.Column{}}
	if s == nil {
		return r
	}
	now := s.now()
	for i, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			continue
		}
		if id := lake.ContentIdentity(info, now); id != "" {
			r.numbers[i] = xxh3.HashString128(f + "\x00" + id).Bytes()
		}
	}
	s.mu.Lock()
	known, ok := s.cache.get(s.key(table))
	s.mu.Unlock()
	if ok {
		known.into(r.columns)
	}
	return r
}

// of gives the columns of file i; false where they are not known.
func (r *recalled) of(i int) ([]lake.Column, bool) {
	columns, ok := r.columns[r.numbers[i]]
	return columns, ok
}

// into adds what is known to a map; nothing where the text is damaged.
func (k knownSchemas) into(columns map[fileNumber][]lake.Column) {
	kinds := make([][]lake.Column, len(k.Kinds))
	for i, flat := range k.Kinds {
		if len(flat) == 0 || len(flat)%2 != 0 {
			return
		}
		for at := 0; at < len(flat); at += 2 {
			kinds[i] = append(kinds[i], lake.Column{Name: flat[at], Type: flat[at+1]})
		}
	}
	files, err := base64.RawStdEncoding.DecodeString(k.Files)
	if err != nil {
		return
	}
	for entry := range slices.Chunk(files, fileNumberSize+1) {
		if len(entry) > fileNumberSize && int(entry[fileNumberSize]) < len(kinds) {
			columns[fileNumber(entry)] = kinds[entry[fileNumberSize]]
		}
	}
}

// keep remembers the kinds that the files of a table came to be of.
func (s *schemas) keep(table string, files []string, r *recalled, kinds []*parquetKind) {
	if s == nil || len(kinds) > knownKindsMost {
		return
	}
	numbers := map[string]fileNumber{}
	anew := false
	for i, f := range files {
		if r.numbers[i] == (fileNumber{}) {
			continue
		}
		numbers[f] = r.numbers[i]
		_, known := r.of(i)
		anew = anew || !known
	}
	if !anew {
		return
	}
	var known knownSchemas
	var text []byte
	for i, k := range kinds {
		var flat []string
		for _, c := range k.columns {
			flat = append(flat, c.Name, c.Type)
		}
		known.Kinds = append(known.Kinds, flat)
		for _, f := range k.files {
			if n, ok := numbers[f]; ok {
				text = append(append(text, n[:]...), byte(i))
			}
		}
	}
	known.Files = base64.RawStdEncoding.EncodeToString(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.put(s.key(table), known)
}
