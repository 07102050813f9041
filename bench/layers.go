package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// layerWidth is how many models stand in a layer of scenario b.
const layerWidth = 50

// layersProject is n small models of 100 rows each in layers; every model
// above the first layer joins two of the layer below.
func layersProject(data string, n int) neutral {
	p := neutral{name: "layers", data: data, sources: []source{{name: "events", path: filepath.Join(data, "events.parquet")}}}
	name := func(layer, i int) string { return fmt.Sprintf("tf_l%02d_m%02d", layer, i) }
	for at := range n {
		layer, i := at/layerWidth, at%layerWidth
		m := model{name: name(layer, i), folder: fmt.Sprintf("layer_%02d", layer), level: layer}
		if layer == 0 {
			m.sql = fmt.Sprintf("select k, cast(sum(v * %d) as bigint) as v, cast(count(*) as bigint) as n\nfrom {{ source('raw', 'events') }}\ngroup by k", i+1)
		} else {
			m.sql = fmt.Sprintf("select a.k, a.v + b.v as v, a.n + b.n as n\nfrom {{ ref('%s') }} a\njoin {{ ref('%s') }} b on a.k = b.k",
				name(layer-1, i), name(layer-1, (i*7+layer)%layerWidth))
		}
		p.models = append(p.models, m)
	}
	return p
}

// runLayers is scenario b.
func runLayers(b *bench) error {
	n := max(layerWidth, b.size(500, layerWidth)/layerWidth*layerWidth)
	var p neutral
	var at string
	sides := func(n int) ([]side, error) {
		dir, err := b.dir("layers")
		if err != nil {
			return nil, err
		}
		at = dir
		if err := b.makeParquet(dir, map[string]string{"events": eventsTable(5000)}); err != nil {
			return nil, err
		}
		p = layersProject(dir, n)
		return b.pair(dir, p, 1)
	}
	if b.opt.growth {
		return b.grow("small models", "models", n, sides)
	}
	all, err := sides(n)
	if err != nil {
		return err
	}
	all = append(all, b.bareSide("bare, 2 at once", at, p, 2))
	targets := []target{
		{side: "rbt", metric: wall, against: "bare", max: 1.25},
		{side: "rbt", metric: cpu, against: "bare", max: 1.25},
	}
	peers, goals := b.peerSides(at, p)
	c := comparison{
		name: strconv.Itoa(n) + " models of 100 rows in layers of 50", base: "bare", sides: append(all, peers...),
		targets: append(targets, goals...), check: byText,
		notes: []string{"bare: one loop of the same COPYs, each file and a receipt made durable as rbt does; bare, 2 at once: the same on two connections, layer by layer"},
	}
	return b.compare(c)
}

// count writes a number of things.
func count(n int, thing string) string {
	if n >= 1_000_000 && n%100_000 == 0 {
		return fmt.Sprintf("%g M %ss", float64(n)/1e6, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
