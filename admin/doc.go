// Package admin is what people do with a namespace: look at its tasks, schedules and instances, and change them.
//
// [Admin] has one small interface for each noun. [New] implements them on Redis. Commands, and whatever else shows a
// namespace to people, use only these interfaces, so that they cannot tell how the namespace is reached. The types of this
// package are the one JSON shape of each thing: a list is always a [List], a moment is in RFC 3339, and a length of time is
// text, such as "1h30m".
package admin
