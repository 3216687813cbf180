/** The routes of the history family. */
import * as z from 'zod'
import { HistoryMessage, HistoryStream, HistoryStreamFilter, StreamName } from '../contract/history.js'
import { Omitted, pageOf } from '../contract/page.js'
import { diagnosticsRoute, routesAbout } from './route.js'

/** Raw history: one bounded sample of a stream, without a cursor. */
export const RawHistory = z.object({
  items: z.array(HistoryMessage),
  count: z.int().min(0),
  omitted: Omitted.optional(),
})

export const HISTORY_ROUTES = routesAbout('history', 'Retained messages.', [
  diagnosticsRoute({
    path: '/history/streams',
    summary: 'Streams that retain messages',
    needs: ['history_list_streams'],
    narrows: true,
    page: 'paged',
    query: HistoryStreamFilter,
    response: pageOf(HistoryStream),
    read: ({ history }, { filter, page }, { ask }) => history.listStreams?.(filter, page, ask),
  }),
  diagnosticsRoute({
    path: '/history/messages',
    summary: 'The newest messages of one stream, oldest first',
    needs: ['history'],
    narrows: true,
    page: 'sample',
    query: z.object({ stream: StreamName }),
    response: RawHistory,
    read: async ({ history }, { filter, page: { limit } }, { ask }) => {
      const { items, truncated, omitted } = await history.readMessages({ stream: filter.stream, limit }, ask)
      // `truncated` is read by `onAccess` alone: raw history answers items and count, nothing else.
      return { items, count: items.length, omitted, truncated: truncated || omitted !== undefined }
    },
  }),
])
