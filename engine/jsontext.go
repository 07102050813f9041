package engine

import (
	"fmt"
	"strings"
)

// jsonText is the SQL text of a value as JSON, NULL for NULL. to_json alone would
// round the numbers inside of JSON to doubles, print a FLOAT as the double that it
// is not and a DECIMAL without its last zeros; and JSON has no infinities. depth
// tells the variables of nested lists apart.
func jsonText(e, typ string, depth int) string {
	asText := textOf(e, typ)
	switch {
	case typ == "JSON":
		// A text of that type that is no JSON, as a file may hold it, is a text.
		return fmt.Sprintf("CASE WHEN json_valid(%[1]s) THEN %[1]s ELSE CAST(to_json(%[1]s) AS VARCHAR) END", asText)
	case strings.HasPrefix(typ, "DECIMAL(") && strings.HasSuffix(typ, ")"):
		return asText
	case floatTypes[typ]:
		return fmt.Sprintf("CASE WHEN isfinite(%s) THEN %[2]s ELSE '\"' || %[2]s || '\"' END", e, asText)
	}
	if text := nestedText(e, typ, depth); text != "" {
		return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN %s END", e, text)
	}
	return "CAST(to_json(" + e + ") AS VARCHAR)"
}

// nestedText is jsonText of a list, struct or map that is not NULL; "" for all
// else.
func nestedText(e, typ string, depth int) string {
	inner := func(e, typ string) string { return "coalesce(" + jsonText(e, typ, depth+1) + ", 'null')" }
	variable := fmt.Sprintf("v%d", depth)
	joined := func(list, each string) string {
		return fmt.Sprintf("array_to_string(list_transform(%s, lambda %s: %s), ',')", list, variable, each)
	}
	if elem, ok := elementType(typ); ok {
		return "'[' || " + joined(e, inner(variable, elem)) + " || ']'"
	}
	if args, ok := typeArguments(typ, "MAP"); ok && len(args) == 2 {
		return "'{' || " + joined("map_entries("+e+")", "to_json(CAST("+variable+".key AS VARCHAR)) || ':' || "+inner(variable+".value", args[1])) + " || '}'"
	}
	args, ok := typeArguments(typ, "STRUCT")
	if !ok {
		return ""
	}
	fields := make([]string, len(args))
	for i, a := range args {
		name, of := fieldOf(a)
		if of == "" {
			return "" // made by row()
		}
		fields[i] = "to_json(" + quoteText(name) + ") || ':' || " + inner(fmt.Sprintf("struct_extract_at(%s, %d)", e, i+1), of)
	}
	return "'{' || " + strings.Join(fields, " || ',' || ") + " || '}'"
}
