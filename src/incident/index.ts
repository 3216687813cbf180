/** The face of `relayscope/incident`: what a router answers as a file, to open, compare and replay without the deployment. */

export { type CapturedRouter, type CaptureOptions, captureIncident } from './capture.js'
export { diffIncidents, type FieldChange, type IncidentDiff, type RouteDiff } from './diff.js'
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
export {
  createReplay,
  openRecording,
  type Recording,
  type Replay,
  type ReplaySource,
  type Segment,
} from './recording.js'
