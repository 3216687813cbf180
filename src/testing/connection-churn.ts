/** The suite of what came and went minute by minute, and what the fakes know of it. */
import { CHURN_MINUTES, type ChurnMinute, ConnectionChurn, MINUTE_MS } from '../contract/connection-churn.js'
import { type ChurnFilter, ClientType, type RegistryInspector } from '../contract/connections.js'
import { ASK, check, checkEnds, checkEqual, checkSchema, notTested } from './expect.js'
import { FAKE_TIME, hasAll, type Partly } from './fake-records.js'
import { NOBODY } from './filters.js'
import type { MakeInspector } from './lists.js'

type Counts = Pick<ChurnMinute, 'opened' | 'ended'>

/** What several counts make together. */
function sum(parts: readonly Counts[]): Counts {
  const ended = new Map<string, number>()
  for (const part of parts)
    for (const [reason, count] of Object.entries(part.ended)) ended.set(reason, (ended.get(reason) ?? 0) + count)
  const opened = parts.reduce((all, part) => all + part.opened, 0)
  return { opened, ended: Object.fromEntries([...ended].filter(([, count]) => count > 0).sort()) }
}

export async function checkChurn(make: MakeInspector<RegistryInspector>): Promise<void> {
  const registry = await make()
  if (!registry?.connectionChurn) return notTested('there is no connectionChurn')
  const churnOf = async (filter: ChurnFilter) => {
    const churn = await registry.connectionChurn?.(filter, ASK)
    checkSchema(ConnectionChurn, churn, 'connectionChurn')
    return churn as ConnectionChurn
  }
  const { items, observed_at } = await churnOf({})
  check(items.length <= CHURN_MINUTES, `connectionChurn tells of ${items.length} minutes, at most ${CHURN_MINUTES}`)
  for (const [i, { minute }] of items.entries()) {
    check(Date.parse(minute) % MINUTE_MS === 0, `connectionChurn tells of ${minute}, where no minute begins`)
    check(minute <= observed_at, `connectionChurn tells of ${minute}, which has not begun`)
    check((items[i - 1]?.minute ?? '') < minute, `connectionChurn is not oldest first, once each: ${minute}`)
  }
  const byType = await Promise.all(ClientType.options.map((client_type) => churnOf({ client_type })))
  for (const { minute, ...counts } of items) {
    const parts = byType.flatMap((churn) => churn.items.filter((one) => one.minute === minute))
    checkEqual(sum(parts), sum([counts]), `what happened at ${minute} by client type, and in all`)
  }
  for (const { minute, ...counts } of (await churnOf({ node_id: NOBODY })).items)
    checkEqual(sum([counts]), sum([]), `what happened at ${minute} at a node that nobody knows`)
  await checkEnds((ask) => registry.connectionChurn?.({}, ask), 'connectionChurn')
}

/** What happened in one minute, at one node and of one type of client where these are given. */
export interface FakeChurn extends Partly<ChurnMinute> {
  node_id?: string
  client_type?: ClientType
}

const FAKE_MINUTE = FAKE_TIME

/** The minutes of a world: those of one instant together, and those that the filter leaves out without events. */
export function fakeChurn(given: readonly FakeChurn[], filter: ChurnFilter): ConnectionChurn {
  const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
  const minutes = [...new Set(given.map(({ minute = FAKE_MINUTE }) => minute))].sort()
  const items = minutes.map((minute) => {
    const parts = given.filter((one) => (one.minute ?? FAKE_MINUTE) === minute && hasAll(one, wanted))
    return { minute, ...sum(parts.map(({ opened = 0, ended = {} }) => ({ opened, ended }))) }
  })
  return { items, observed_at: minutes.at(-1) ?? FAKE_TIME }
}
