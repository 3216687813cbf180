/** The contract suite of a message history's inspector. */
import { type HistoryInspector, HistoryMessage, HistoryStream, tellStream } from '../contract/history.js'
import { ASK, type ContractCase, check, checkEqual, checkSchema, checkSettles } from './expect.js'
import { listCases, type MakeInspector, NOBODY, walk } from './lists.js'
import { userCases } from './users.js'

const NONE = { items: [], next_cursor: null, has_more: false }

/** Holds a history inspector to its contract. `make` gives one with the same messages each time. */
export function historyContract(make: MakeInspector<HistoryInspector>): ContractCase[] {
  return [
    ...listCases<HistoryInspector, HistoryStream>(make, {
      name: 'listStreams',
      list: (history, filter) =>
        history.listStreams && (async (page, ask) => (await history.listStreams?.(filter, page, ask)) ?? NONE),
      item: HistoryStream,
      id: 'stream',
      filters: ['user_id'],
    }),
    ...userCases<HistoryInspector, HistoryStream>(make, {
      list: (history, page, ask) => history.listStreams?.({}, page, ask),
      tell: tellStream,
    }),
    { name: 'readMessages answers the newest messages of one stream, oldest first', run: () => checkMessages(make) },
  ]
}

async function checkMessages(make: MakeInspector<HistoryInspector>): Promise<void> {
  const history = await make()
  if (!history) return
  const streams = await walk<HistoryStream>(
    async (page, ask) => (await history.listStreams?.({}, page, ask)) ?? NONE,
    100,
    'listStreams',
  )
  for (const { stream, message_count } of streams.slice(0, 20)) {
    const whole = await history.readMessages({ stream, limit: 1_000 }, ASK)
    checkEqual(whole.items.length, Math.min(message_count, 1_000), `how many messages ${stream} has`)
    for (const [i, message] of whole.items.entries()) {
      checkSchema(HistoryMessage, message, `a message of ${stream}`)
      checkEqual(message.stream, stream, 'readMessages shows another stream')
      const before = whole.items[i - 1]
      check(!before || before.sequence < message.sequence, `${stream} is not oldest first`)
    }
    for (const limit of [1, 2]) {
      const sample = await history.readMessages({ stream, limit }, ASK)
      checkEqual(sample.items, whole.items.slice(-limit), `the newest ${limit} of ${stream}`)
      check(sample.truncated || message_count <= limit, `${stream} was cut to ${limit}, and is not truncated`)
    }
  }
  checkEqual((await history.readMessages({ stream: NOBODY, limit: 1 }, ASK)).items, [], 'an unknown stream')
  await checkSettles((ask) => history.readMessages({ stream: NOBODY, limit: 1 }, ask), 'readMessages')
}
