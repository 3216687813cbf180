/** What the frames of a session’s event stream carry beside the events themselves. */
import * as z from 'zod'
import { GapReason } from './event-bus.js'
import { named } from './ids.js'

const Count = z.int().min(0)

/** `ready`, the first frame. */
export const ReadyFrame = z
  .object({
    subscription_id: z.string().describe('This stream, for logs.'),
    session_id: named('session_id'),
    site_id: named('site_id'),
    queue_limit: Count.describe('Events that wait for this subscriber before its oldest are dropped.'),
    replay: z.literal(false).describe('Nothing from before is replayed: refetch what you show.'),
    heartbeat_ms: Count.describe('Silence after which a comment is written, in ms.'),
  })
  .describe('`ready`: the stream lives.')
export type ReadyFrame = z.infer<typeof ReadyFrame>

/** `gap`, in place of what was lost. */
export const GapFrame = z
  .object({
    reason: GapReason.describe('Why they are missing.'),
    dropped: Count.nullable().describe('How many are missing here; `null` where nobody knows.'),
    dropped_total: Count.nullable().describe('How many this stream has missed so far; `null` where nobody knows.'),
    first_seq: Count.nullable().describe('The first of them; `null` where nobody knows.'),
    last_seq: Count.nullable().describe('The last of them; `null` where nobody knows.'),
  })
  .describe('`gap`: events were lost. Refetch what you show.')
export type GapFrame = z.infer<typeof GapFrame>

/** Why a stream ends. */
export const EndReason = z
  .enum(['session_closed', 'session_expired', 'policy_revoked', 'shutdown'])
  .describe('Why a stream ends. After `shutdown` it is worth coming back.')
export type EndReason = z.infer<typeof EndReason>

/** `end`, the last frame. */
export const EndFrame = z.object({ reason: EndReason.describe('Why it ends.') }).describe('`end`: nothing follows.')
