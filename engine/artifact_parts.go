package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"rbt/internal/plan"
	"rbt/internal/project"
)

// A manifest holds the compiled text of every model, and a command that builds one
// model should not render all others for it. So a file beside manifest.json says
// where the entries of models lie in it and what each was made from, and the next
// manifest takes over those that would be the same. The file holds the hash of the
// manifest: any other one is made anew, as is an entry of a model of which it is not
// known from what it was made.

// partKey is equal only for equal entries; "" where that cannot be told.
type partKey string

// partKeys are those of a manifest, by ID.
type partKeys map[string]partKey

const (
	partsPrefix = "manifest-"
	partsFile   = partsPrefix + "parts"
	// partsMagic counts up with the form of the file; what an entry holds is told by
	// the program, which is part of every key. Behind it stand the hash of the
	// manifest, the records, and the hash of both: a place that was damaged would be
	// taken over into every later manifest.
	partsMagic = "rbt manifest 2\n"
	partKeyLen = 16
	// partRecord is the length of what is said of an entry: key, place, length.
	partRecord = partKeyLen + 8 + 8
)

// partKeyOf gives the key of a model's entry: all that it is made from.
func (m manifestWriter) partKeyOf(n *plan.Node) partKey {
	if n.Model == nil {
		return ""
	}
	text := m.p.RecallKey(n.Model)
	if text == "" {
		return ""
	}
	var b []byte
	write := func(parts ...string) {
		for _, p := range parts {
			b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
		}
	}
	write(text, n.ID, n.Name, n.File, m.prints[n.ID].Body, m.prints[n.ID].Configs)
	write(ids(n.Parents)...)
	for _, t := range n.Tests {
		write("test", t.Kind, t.Where)
		write(t.Columns...)
	}
	sum := sha256.Sum256(b)
	return partKey(sum[:partKeyLen])
}

// knownParts are the entries of the manifest that lies in a target folder, by key.
type knownParts map[partKey]string

func readParts(targetDir string) knownParts {
	index, err := project.ReadText(filepath.Join(targetDir, "cache", partsFile))
	body, ok := strings.CutPrefix(index, partsMagic)
	if err != nil || !ok || len(body) < 2*sha256.Size || (len(body)-2*sha256.Size)%partRecord != 0 {
		return nil
	}
	body, sum := body[:len(body)-sha256.Size], body[len(body)-sha256.Size:]
	if want := sha256.Sum256([]byte(body)); sum != string(want[:]) {
		return nil
	}
	manifest, err := project.ReadText(filepath.Join(targetDir, ManifestFile))
	if err != nil {
		return nil
	}
	if project.SumOf(manifest) != body[:sha256.Size] {
		return nil
	}
	known := make(knownParts, len(body)/partRecord)
	for rest := body[sha256.Size:]; rest != ""; rest = rest[partRecord:] {
		at := binary.LittleEndian.Uint64([]byte(rest[partKeyLen:]))
		length := binary.LittleEndian.Uint64([]byte(rest[partKeyLen+8 : partRecord]))
		if at > uint64(len(manifest)) || length > uint64(len(manifest))-at {
			return nil
		}
		known[partKey(rest[:partKeyLen])] = manifest[at : at+length]
	}
	return known
}

// hashing is what a hash is written to and read by.
type hashing interface {
	io.Writer
	Sum(b []byte) []byte
}

// partPlaces notes where the parts of a document lie that have a key.
type partPlaces struct {
	keys    partKeys
	sum     hashing // of the document; nil where nothing is noted
	records []byte
}

func (p *partPlaces) part(id string, at int64, length int) {
	if key := p.keys[id]; key != "" {
		p.records = append(p.records, key...)
		p.records = binary.LittleEndian.AppendUint64(p.records, uint64(at))
		p.records = binary.LittleEndian.AppendUint64(p.records, uint64(length))
	}
}

// save writes where the parts lie. What cannot be written costs the next command
// time.
func (p *partPlaces) save(targetDir string) {
	body := slices.Concat(p.sum.Sum(nil), p.records)
	sum := sha256.Sum256(body)
	content := slices.Concat([]byte(partsMagic), body, sum[:])
	_ = project.KeepCache(filepath.Join(targetDir, "cache", partsFile), partsPrefix, string(content))
}
