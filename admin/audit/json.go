package audit

// ReportJSON is a [Report] as it is in JSON.
type ReportJSON = wireReport
