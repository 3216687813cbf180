/** The scripts of the viewer streams: each node reports its own, periodically. */
import { ignoreReply } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import endLua from './end.lua'
import { UNREPORTED_UNTIL } from './inspector.js'
import reportLua from './report.lua'

/**
 * Reports the streams of a node. `streams`: id, viewer, session, site and body of each; `is_short`: 1 if the node has
 * more than it reports. The state of a row holds its ids and when it expires.
 */
export const REPORT_STREAMS = defineScript(
  'subscriptions.report',
  { args: ['lease', 'is_short'], rest: 'streams', constants: { BEYOND: UNREPORTED_UNTIL }, answer: ignoreReply },
  reportLua,
)

/** Deletes streams that have ended, by their ids. */
export const END_STREAMS = defineScript(
  'subscriptions.end',
  { args: [], rest: 'gone', answer: ignoreReply, freesMemory: true },
  endLua,
)
