/** The face of `relayscope/incident`: what a router answers as a file, to open, compare and replay without the deployment. */

export { type CaptureOptions, type CaptureProgress, captureIncident } from './capture.js'
export { type CaptureLastOptions, captureLast } from './capture-last.js'
export type { FieldChange, RowsDiff } from './compare.js'
export { diffIncidents, type IncidentDiff, type RouteDiff } from './diff.js'
export {
  CaptureFailed,
  type Incident,
  type IncidentPart,
  incidentJsonSchema,
  type Missing,
  type MissingReason,
} from './format.js'
export { createIncidentInspectors, incidentComposition } from './inspectors.js'
export { type IncidentFile, type IncidentRefusal, IncidentRefused, readIncident } from './read.js'
export { createFlightRecorder, type FlightRecorder, type FlightRecorderOptions } from './recorder.js'
export {
  createReplay,
  openRecording,
  type RecordedSpan,
  type Recording,
  type ReplaySource,
  type Segment,
} from './recording.js'
export type { CapturedRouter } from './source.js'
export type { RecordingFiles } from './writer.js'
