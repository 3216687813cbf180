/** A fresh dispatcher with its clock for each test, and its inspector with validated results. */
import { afterEach, beforeEach } from 'vitest'
import {
  type CommandDispatcher,
  type CommandFilter,
  DeliveryCommand,
  type DeliveryInspector,
  DeliveryNode,
  DeliveryStatus,
  DeliverySummary,
  DeliveryTenant,
  type Inspected,
} from '../../src/internal/contract/index.js'
import type { Order } from '../../src/internal/contract/page.js'
import { ASK, type Clock, createClock, walk } from './clock.js'
import { key } from './delivery-commands.js'

/** What a test may set; everything else is the default of the contract. */
export interface DispatcherSettings {
  now: () => number
  capacity?: number | ((scope_id: string) => number)
  ackTimeoutMs?: number
  maxRetained?: number
  maxDeliveriesPerClient?: number
}

export type TestedDispatcher = Inspected<CommandDispatcher, DeliveryInspector> & { reconcile(): Promise<void> }

/** @param make a dispatcher whose wall clock is `now`; it is closed after each test. */
export function createSubject<Settings extends { now?: () => number }>(
  make: (settings: Settings) => TestedDispatcher | Promise<TestedDispatcher>,
) {
  let time: Clock
  let current: TestedDispatcher
  // Both stand for those of the test that runs now.
  const clock: Clock = { now: () => time.now(), advance: (ms) => time.advance(ms) }
  const dispatcher: TestedDispatcher = {
    dispatch: (input) => current.dispatch(input),
    attach: (instance, deliver) => current.attach(instance, deliver),
    acknowledge: (input) => current.acknowledge(input),
    settle: (input) => current.settle(input),
    cancel: (input) => current.cancel(input),
    reconcile: () => current.reconcile(),
    close: () => current.close(),
    get inspector() {
      return current.inspector
    },
  }
  /** Replaces the dispatcher by a new one. */
  const open = async (settings: Partial<Settings> = {}) => {
    await current?.close()
    current = await make({ now: time.now, ...settings } as Settings)
  }

  const advance = async (ms: number) => {
    clock.advance(ms)
    await dispatcher.reconcile()
  }
  const status = async (id: string) => {
    const record = await dispatcher.inspector.status(key(id), ASK)
    return record && DeliveryStatus.strict().parse(record)
  }
  const terminal = async (id: string) => (await status(id))?.terminal
  const summary = async () => DeliverySummary.strict().parse(await dispatcher.inspector.summary(ASK))
  const tenants = (limit = 100) =>
    walk(async (page) => {
      const answer = await dispatcher.inspector.listTenants(page, ASK)
      for (const item of answer.items) DeliveryTenant.strict().parse(item)
      return answer
    }, limit)
  const commands = (filter: CommandFilter = {}, limit = 100, order: Order | undefined = undefined) =>
    walk(async (page) => {
      const answer = await dispatcher.inspector.listCommands?.(filter, { ...page, order }, ASK)
      if (!answer) throw new Error('the inspector lists no commands')
      for (const item of answer.items) DeliveryCommand.strict().parse(item)
      return answer
    }, limit)
  const node = async () => {
    const nodes = await walk((page) => dispatcher.inspector.listNodes(page, ASK))
    return DeliveryNode.strict().parse(nodes[0])
  }

  beforeEach(async () => {
    time = createClock()
    await open()
  })
  afterEach(() => dispatcher.close())

  return { clock, dispatcher, open, advance, status, terminal, summary, tenants, commands, node }
}
export type Subject = ReturnType<typeof createSubject<DispatcherSettings>>
