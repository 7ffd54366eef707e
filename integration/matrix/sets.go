package main

// A set is a column of a table: the tests that show one thing on a server.
type set struct {
	name  string
	parts []part
}

// A part is some tests of one package, which a folder of the repository names.
type part struct{ folder, run string }

const promises = "^TestPromise"

var redisSets = []set{
	{"promises", []part{
		{".", promises}, {"consumer", promises}, {"instance", promises}, {"producer", promises}, {"internal/queue", promises},
		{"internal/archiver", promises}, {"integration", "^TestPromise[37]_"}, // a test that needs a soak says nothing here
	}},
	{"Sentinel", []part{{"integration", "^TestFailover_sentinel"}, {"internal/store", "^(TestSentinels|TestDial_goesBy)"}}},
	{"Cluster", []part{
		{"integration", "^TestFailover_cluster"}, {"lock", "^TestCluster"}, {"internal/queue", "Cluster"}, {".", "^TestRights_onACluster"},
	}},
	{"no `CONFIG`, no `PUBSUB`", []part{{".", "^TestManaged"}}},
	{"few rights", []part{{".", "^TestRights"}}},
	{"TLS alone", []part{{"internal/store", "TLS"}}},
	{"eviction is named", []part{{"integration", "^TestFault_anEvictionPolicy"}}},
}

var postgresSets = []set{
	{"archive", []part{{"archive/sqlarchive", "."}, {"internal/archiver", "."}}},
	{"outbox", []part{{"outbox", "."}}},
	{"Once", []part{{"handlers", "^TestOnce"}}},
}
