/** The scripts of the viewer streams of a deployment: a node says which it holds, again and again. */
import { ignoreReply } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import endLua from './end.lua'
import { UNREPORTED_UNTIL } from './inspector.js'
import reportLua from './report.lua'

// The state of a row holds what names it and until when it counts, its body how it stands.
/** `streams` are id, viewer, session, site and body, again and again. `is_short`: `1` where the node has more than it reports. */
export const REPORT_STREAMS = defineScript(
  'subscriptions.report',
  { args: ['lease', 'is_short'], rest: 'streams', constants: { BEYOND: UNREPORTED_UNTIL }, answer: ignoreReply },
  reportLua,
)

/** Takes out streams that have ended, by their ids. */
export const END_STREAMS = defineScript(
  'subscriptions.end',
  { args: [], rest: 'gone', answer: ignoreReply, freesMemory: true },
  endLua,
)
