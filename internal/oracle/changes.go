package oracle

// Change is a clock change of a zone, at a time in RFC 3339.
type Change struct{ Zone, At, What string }

// Changes are clock changes that have broken schedulers.
var Changes = []Change{
	{"Europe/Berlin", "2026-03-29T01:00:00Z", "an hour forward"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z", "an hour back"},
	{"America/New_York", "2026-03-08T07:00:00Z", "an hour forward, west"},
	{"America/New_York", "2026-11-01T06:00:00Z", "an hour back, west"},
	{"Europe/Dublin", "2026-10-25T01:00:00Z", "winter time is the negative one"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z", "half an hour forward"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z", "half an hour back"},
	{"Antarctica/Troll", "2026-03-29T01:00:00Z", "two hours forward"},
	{"Antarctica/Troll", "2026-10-25T01:00:00Z", "two hours back"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z", "a day left out"},
	{"Pacific/Kwajalein", "1993-08-21T12:00:00Z", "a day left out"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z", "midnight left out"},
	{"America/Sao_Paulo", "2018-02-18T02:00:00Z", "midnight put off"},
	{"Asia/Beirut", "2026-03-28T22:00:00Z", "midnight left out"},
	{"Asia/Beirut", "2026-10-24T21:00:00Z", "midnight put off"},
	{"Africa/Cairo", "2026-04-23T22:00:00Z", "midnight left out"},
	{"Africa/Cairo", "2026-10-29T21:00:00Z", "midnight put off"},
	{"Asia/Kathmandu", "1985-12-31T18:30:00Z", "a quarter forward, for good"},
	{"Africa/Monrovia", "1972-01-07T00:44:30Z", "44 minutes and a half"},
	{"Asia/Pyongyang", "2015-08-14T15:00:00Z", "half an hour back, for good"},
	{"Asia/Pyongyang", "2018-05-04T15:00:00Z", "half an hour forward, for good"},
	{"America/Caracas", "2007-12-09T07:00:00Z", "half an hour back, for good"},
	{"Pacific/Norfolk", "2015-10-03T14:30:00Z", "half an hour back, for good"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z", "Ramadan begins"},
	{"America/Nuuk", "2026-03-29T01:00:00Z", "the last hour of a day left out"},
	{"America/Havana", "2026-03-08T05:00:00Z", "midnight left out"},
	{"Asia/Tehran", "2022-03-21T20:30:00Z", "midnight left out"},
	{"America/St_Johns", "1988-04-03T03:31:00Z", "two hours forward at a minute past midnight"},
	{"America/Los_Angeles", "2438-03-14T10:00:00Z", "far ahead"},
	{"Europe/Berlin", "9998-10-25T01:00:00Z", "farther"},
}
