/** Trace context of a record: a link to the trace of the host in which it came to be. */
import * as z from 'zod'

/** A W3C `traceparent` of version 00. */
export const Traceparent = z
  .string()
  .regex(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/, 'must be a W3C traceparent of version 00')

const TraceId = z.string().regex(/^(?!0{32})[0-9a-f]{32}$/, 'must be 32 hexadecimal digits in lower case, not all 0')

/** The fields of a record that was given a trace. */
export const TRACE_FIELDS = {
  trace: Traceparent.optional().describe('The W3C `traceparent` that the host gave for it; absent without one.'),
  trace_id: TraceId.optional().describe('The trace id of `trace`; absent without one.'),
}

/** The filter by a trace. */
export const byTraceId = TraceId.optional().describe('Only records of this trace.')

/** Returns the fields of a record with this trace. */
export const traceFields = (trace: string | undefined): { trace?: string; trace_id?: string } =>
  trace === undefined ? {} : { trace, trace_id: trace.slice(3, 35) }

/** Bytes that a history counts for the trace of a message. */
export const TRACE_BYTES = 128
