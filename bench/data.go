package main

import (
	"fmt"
	"path/filepath"
)

// seed is mixed into every generated value: the same data in every run.
const seed = 20260101

// makeParquet writes raw tables, each a SELECT, as Parquet files in a child
// process. The order of rows is that of the SELECT.
func (b *bench) makeParquet(dir string, tables map[string]string) error {
	j := job{Settings: []string{"SET TimeZone = 'UTC'"}}
	for name, query := range tables {
		path := filepath.Join(dir, name+".parquet")
		j.Steps = append(j.Steps, step{Exec: "COPY (" + query + ") TO " + quote(path) + " (FORMAT parquet, COMPRESSION zstd)"})
	}
	b.logf("   data: %d tables under %s", len(tables), dir)
	if _, err := b.runJob(dir, "data", j); err != nil {
		return fmt.Errorf("make the data: %w", err)
	}
	return nil
}

// rnd is an SQL expression: a number in [0, n) that depends on i and on the
// salt alone.
func rnd(salt, n int) string {
	return fmt.Sprintf("(hash(i * 1000003 + %d) %% %d)::BIGINT", seed+salt*7919, n)
}

// pick is an SQL expression: one of the texts, by i.
func pick(salt int, of ...string) string {
	list := ""
	for k, text := range of {
		if k > 0 {
			list += ", "
		}
		list += quote(text)
	}
	return fmt.Sprintf("[%s][%s + 1]", list, rnd(salt, len(of)))
}

// ordersTable is the raw table of the wide model: 11 columns.
func ordersTable(rows int) string {
	return fmt.Sprintf(`SELECT i AS id, %s AS customer_id, %s::INTEGER AS product_id, %s AS status, %s AS channel,
		(1 + %s)::INTEGER AS quantity, (%s / 100)::DECIMAL(10,2) AS price, (%s / 100)::DECIMAL(4,2) AS discount,
		TIMESTAMP '2024-01-01' + to_seconds(%s) AS ordered_at, %s AS country, 'order note ' || %s AS note
		FROM range(%d) t(i)`,
		rnd(1, 500_000), rnd(2, 20_000), pick(3, "placed", "paid", "shipped", "returned", "cancelled"),
		pick(4, "web", "app", "shop", "phone"), rnd(5, 9), rnd(6, 90_000), rnd(7, 40), rnd(8, 63_000_000),
		pick(9, "DE", "FR", "IT", "ES", "PL", "NL", "SE", "AT"), rnd(10, 100_000), rows)
}

// eventsTable is the raw table of the small models: 100 keys.
func eventsTable(rows int) string {
	return fmt.Sprintf("SELECT i AS id, (i %% 100)::BIGINT AS k, %s AS v FROM range(%d) t(i)", rnd(1, 1000), rows)
}
