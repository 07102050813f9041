package plan

type identities struct{}
