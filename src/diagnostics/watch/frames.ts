/** Schemas of the frames of a watch, for its OpenAPI description. */
import * as z from 'zod'
import { Timestamp } from '../../contract/ids.js'
import { JsonRecord } from '../../contract/json.js'

const view = z.string().describe('The view, as the request named it.')
const version = z.int().min(1).describe('Number of the state of the view; it increases by one with each change.')
const observed_at = Timestamp.describe('When the view was read last.')
const refresh_ms = z
  .int()
  .min(1_000)
  .describe(
    'Ms between two readings of the view: 1,000, or more where the watches of a principal cost more than its share.',
  )
const rows = z.array(JsonRecord)

/** The current state. Replaces the previous state. */
export const WatchSnapshot = z
  .object({
    view,
    version,
    observed_at,
    refresh_ms,
    row_id: z.array(z.string()).describe('The fields that name a row: the value of one, or the JSON list of several.'),
    page: JsonRecord.describe('The page that a GET of the view returns.'),
  })
  .describe('The current state of the view. Replaces any previous state.')

/** A change. Clients reject one whose `from` is not their own version. */
export const WatchDelta = z
  .object({
    view,
    from: z
      .int()
      .min(1)
      .describe('The version that the change applies to. Clients reject a change to a version other than their own.'),
    version,
    observed_at,
    refresh_ms,
    upsert: rows.describe('New and changed rows, complete.'),
    remove: z.array(z.string()).describe('Ids of removed rows.'),
    order: z
      .array(z.string())
      .nullable()
      .describe(
        'Ids of all rows in order; `null` if the remaining rows keep their order. Then `new_rows` says where new rows are inserted.',
      ),
    new_rows: z
      .enum(['last', 'first'])
      .describe('Where new rows are inserted while `order` is `null`, in the order of `upsert`.'),
    page: JsonRecord.describe('The page without its items.'),
  })
  .describe('The changes since a version.')

/** Nothing changed up to `observed_at`. Sent at least every 15 s while the sources answer. */
export const WatchSync = z
  .object({ view, version, observed_at, refresh_ms })
  .describe(
    'Nothing changed up to `observed_at`. Sent at least every 15 s while the sources answer. The same `observed_at` again: the view was not read since, because of its `refresh_ms`.',
  )

/** The server does not know what this client missed: a snapshot follows. */
export const WatchReset = z
  .object({ view })
  .describe('The server does not know what this client missed. A snapshot follows.')

/** The last frame. */
export const WatchEnd = z
  .object({
    reason: z
      .enum(['forbidden', 'scope_changed'])
      .describe('`forbidden`: the caller no longer has access. `scope_changed`: the caller may see other users now.'),
    retry: z.int().min(0).nullable().describe('Milliseconds after which to reconnect; `null` if the client must not.'),
  })
  .describe('The last frame.')
