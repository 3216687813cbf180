/** Contract suite of the message history's inspector. */

import {
  HISTORY_FAMILY,
  type HistoryInspector,
  HistoryMessageAnswer,
  type HistoryMessageInput,
  HistoryStreamAnswer,
  HistoryStreamFilter,
  type HistoryStreamInput,
} from '../internal/contract/history.js'
import { userStream } from '../internal/contract/ingest.js'
import { answering, type Known } from './answering.js'
import {
  CLIENT,
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEqual,
  checkKnown,
  checkSchema,
  FAKE_TIME,
  fakePage,
  fill,
  INSTANCE,
  type Make,
  notTested,
  type Partly,
  toCases,
  wholeRecords,
} from './expect.js'
import { listCases, type MakeInspector, UNKNOWN_ID, userCases, walk } from './lists.js'

const NONE = { items: [], next_cursor: null, has_more: false }

/** Returns the contract suite of a history inspector. `make` creates one with the same messages each time. */
export function historyContract(given: MakeInspector<HistoryInspector>): ContractCase[] {
  const make = answering(given)
  return toCases([
    ...listCases<Known<HistoryInspector>, HistoryStreamAnswer>(make, {
      name: 'listStreams',
      ordered: true,
      list: (history, filter) =>
        history.listStreams && (async (page, ctx) => (await history.listStreams?.(filter, page, ctx)) ?? NONE),
      item: HistoryStreamAnswer,
      id: 'stream',
      filters: HistoryStreamFilter.keyof().options,
    }),
    ...userCases(make, HISTORY_FAMILY.users),
    { name: 'readMessages returns the newest messages of one stream, oldest first', run: () => checkMessages(make) },
  ])
}

async function checkMessages(make: MakeInspector<Known<HistoryInspector>>): Promise<void> {
  const history = await make()
  if (!history) return notTested('the history is not implemented')
  const streams = await walk<HistoryStreamAnswer>(
    async (page, ctx) => (await history.listStreams?.({}, page, ctx)) ?? NONE,
    100,
    'listStreams',
  )
  const unknown: Record<string, null> = {}
  for (const { stream, message_count } of streams.slice(0, 20)) {
    const whole = await history.readMessages({ stream, limit: 1_000 }, CONTEXT)
    if (message_count === null) unknown.message_count = null
    else checkEqual(whole.items.length, Math.min(message_count, 1_000), `the number of messages of ${stream}`)
    for (const [i, message] of whole.items.entries()) {
      checkSchema(HistoryMessageAnswer, message, `a message of ${stream}`)
      checkEqual(message.stream, stream, 'readMessages returned another stream')
      const [before, { sequence }] = [whole.items[i - 1]?.sequence ?? null, message]
      if (sequence === null) unknown.sequence = null
      else check(before === null || before < sequence, `messages of ${stream} must be oldest first`)
    }
    for (const limit of [1, 2]) {
      const sample = await history.readMessages({ stream, limit }, CONTEXT)
      checkEqual(sample.items, whole.items.slice(-limit), `the newest ${limit} of ${stream}`)
      check(
        sample.truncated || (message_count ?? whole.items.length) <= limit,
        `${stream} was cut to ${limit} messages, so truncated must be true`,
      )
    }
  }
  checkEqual((await history.readMessages({ stream: UNKNOWN_ID, limit: 1 }, CONTEXT)).items, [], 'an unknown stream')
  await checkEnds((ctx) => history.readMessages({ stream: UNKNOWN_ID, limit: 1 }, ctx), 'readMessages')
  checkKnown(unknown)
}

/** Data of the fake message history. */
export interface HistoryWorld {
  /** Messages. */
  messages?: Partly<HistoryMessageInput>[]
  /** Makes the history list its streams. */
  streams?: Partly<HistoryStreamInput>[]
}

const streamOf = ({ user_id }: { user_id?: string | null | undefined }) =>
  userStream(user_id ?? CLIENT.user_id, 'stream-1')

const OUTSIDE: NonNullable<HistoryMessageInput['externalized']> = {
  ref: 'payload-1',
  bytes: 0,
  hydration: 'not_configured',
}

const toMessage: Make<HistoryMessageInput> = ({ externalized, ...given }, place, all) => {
  const stream = given.stream ?? streamOf(given)
  return fill<HistoryMessageInput>(
    {
      ...INSTANCE,
      message_id: `message-${place}`,
      stream,
      sequence: all.slice(0, place - 1).filter((other) => (other.stream ?? streamOf(other)) === stream).length + 1,
      kind: 'event',
      recorded_at: FAKE_TIME,
      payload: null,
      externalized: externalized ? fill(OUTSIDE, externalized) : null,
    },
    given,
  )
}

/** Creates a stream. Its message count is that of `messages` unless given. */
const toStreamOver =
  (messages: readonly HistoryMessageInput[]): Make<HistoryStreamInput> =>
  (given) => {
    const stream = given.stream ?? streamOf(given)
    return fill(
      {
        stream,
        user_id: CLIENT.user_id,
        message_count: messages.filter((message) => message.stream === stream).length,
        first_recorded_at: FAKE_TIME,
        last_recorded_at: FAKE_TIME,
      },
      given,
    )
  }

export function fakeHistory(world: HistoryWorld): HistoryInspector | undefined {
  if (!world.messages && !world.streams) return undefined
  const messages = () => wholeRecords(toMessage, world.messages)
  return {
    readMessages({ stream, limit }) {
      const retained = messages().filter((message) => message.stream === stream)
      return { items: retained.slice(-limit), truncated: retained.length > limit }
    },
    ...(world.streams && {
      listStreams: (filter, page) => fakePage(toStreamOver(messages()), world.streams, filter, page),
    }),
  }
}
