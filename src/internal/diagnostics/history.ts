/** The routes of the history family. */
import * as z from 'zod'
import { HistoryMessageAnswer, HistoryStreamAnswer, HistoryStreamFilter, StreamName } from '../contract/history.js'
import { Omitted, pageSchema } from '../contract/page.js'
import { lastPage, MESSAGE, STREAM } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

/** Raw history: one bounded sample of a stream, without a cursor. */
export const RawHistory = z
  .object({
    items: z.array(HistoryMessageAnswer).describe('The newest messages of the stream, oldest first.'),
    count: z.int().min(0).describe('Number of these.'),
    omitted: Omitted.optional().describe('Messages among these that cannot be shown. Absent: none.'),
  })
  .describe('Raw history: one bounded sample of a stream.')

export const HISTORY_ROUTES = routeSection('history', 'Retained messages.', [
  diagnosticsRoute({
    path: '/history/streams',
    operationId: 'listHistoryStreams',
    summary: 'Streams that retain messages, the newest first unless `order` says otherwise',
    requires: ['history_list_streams'],
    scopable: true,
    page: 'paged',
    order: 'newest',
    query: HistoryStreamFilter,
    response: pageSchema(HistoryStreamAnswer),
    example: lastPage(STREAM),
    read: ({ history }, { filter, page }, { ctx }) => history.listStreams?.(filter, page, ctx),
  }),
  diagnosticsRoute({
    path: '/history/messages',
    operationId: 'listHistoryMessages',
    summary: 'The newest messages of one stream, oldest first',
    requires: ['history'],
    scopable: true,
    // A spilled payload can become unavailable and available again without a new version.
    unversioned: true,
    page: 'sample',
    query: z.object({
      stream: StreamName.describe('The canonical name of the stream, as `/history/streams` lists it.'),
    }),
    response: RawHistory,
    example: { items: [MESSAGE], count: 1 },
    read: async ({ history }, { filter, page: { limit } }, { ctx }) => {
      const { items, truncated, omitted } = await history.readMessages({ stream: filter.stream, limit }, ctx)
      // `truncated` is only used by `onAccess`: the raw history contains items and count.
      return { items, count: items.length, omitted, truncated: truncated || omitted !== undefined }
    },
  }),
])
