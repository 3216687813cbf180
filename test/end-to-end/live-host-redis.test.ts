/** Boots the live host as two nodes and an observer over a store of its own, kills one node, and misses nothing. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createCooperativeSiteClient } from '../../src/browser/index.js'
import type {
  CommandKey,
  Connection,
  Context,
  DeliveryNode,
  DeliveryStatus,
  PendingCall,
} from '../../src/internal/contract/index.js'
import { describeRedis } from '../redis/server.js'
import { askAsPage, end, isAlive, type LiveHost, NPM_START, startLiveHost, until } from './live-host-process.js'

// A task has twenty seconds; a slow machine shows its end later.
const TERMINAL_MS = 60_000

type Command = CommandKey

// Every folder that anything here makes is in this one.
const folder = mkdtempSync(join(tmpdir(), 'relayscope-test-'))
vi.stubEnv('TMPDIR', folder)
afterAll(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

describeRedis('the live host on a shared store', () => {
  let host: LiveHost
  const admitted = new Map<string, Command>()
  beforeAll(async () => {
    host = await startLiveHost(['--redis', 'embedded'], NPM_START)
  })
  afterAll(async () => {
    await end(host, 'SIGTERM')
  })

  const found = (pattern: RegExp) => pattern.exec(host.text)?.[1] ?? ''
  const pidOf = (name: string) => Number(found(new RegExp(`^ {2}${name} {2}pid (\\d+)`, 'm')))
  const urlOf = (node: string) => found(new RegExp(`^ {2}node ${node} .* (http\\S+)$`, 'm'))
  const all = () => ['node a', 'node b', 'observer', 'redis-server'].map(pidOf).concat(Object.values(host.pids))

  async function itemsOf<T>(path: string): Promise<T[]> {
    return ((await host.ask(path)).body as { items: T[] }).items
  }

  /** Returns the record of a command; `undefined` if it doesn't exist. */
  async function statusOf({ user_id, client_id, command_id }: Command): Promise<DeliveryStatus | undefined> {
    const { status, body } = await host.ask(
      `/delivery/status?${new URLSearchParams({ user_id, client_id, command_id })}`,
    )
    return status === 200 ? (body as DeliveryStatus) : undefined
  }

  /** Returns the unfinished work: tasks of workers and pending calls. */
  async function note(): Promise<Map<string, Command>> {
    const [contexts, calls] = await Promise.all([itemsOf<Context>('/contexts'), itemsOf<PendingCall>('/rpc/pending')])
    const tasks = contexts.map(({ task_id, ...context }) => ({ ...context, command_id: task_id }))
    for (const command of [...tasks, ...calls.map((call) => ({ ...call, command_id: call.correlation_id }))]) {
      const { user_id, client_id, command_id } = command
      // A task is assigned a moment before its command is admitted.
      if (command_id === null || admitted.has(command_id) || !(await statusOf({ user_id, client_id, command_id })))
        continue
      admitted.set(command_id, { user_id, client_id, command_id })
    }
    return admitted
  }

  const nodesOfClients = async () =>
    Object.fromEntries(
      (await itemsOf<Connection>('/connections?status=connected')).map(({ client_id, node_id }) => [
        client_id,
        node_id,
      ]),
    )

  it('answers every question that it prints, through an observer that is no part of it', async () => {
    expect(host.diagnostics).not.toContain(urlOf('a'))
    expect(host.diagnostics).not.toContain(urlOf('b'))
    const answers = await Promise.all(host.questions.map(async (path) => [path, (await host.ask(path)).status]))
    expect(answers).toEqual(host.questions.map((path) => [path, 200]))
  })

  it('has both nodes alive, with clients and work on each', async () => {
    const nodes = await until('two nodes that admit and deliver', async () => {
      const working = (await itemsOf<DeliveryNode>('/delivery/nodes')).filter(
        ({ stale, connection_waiters, counters }) =>
          !stale && connection_waiters === 2 && counters.other.admitted && counters.other.attempt_handed_over,
      )
      return working.length === 2 ? working : undefined
    })
    expect(nodes.map(({ node_id }) => node_id).sort()).toEqual(['a', 'b'])
    expect(await nodesOfClients()).toEqual({ 'console-1': 'a', 'console-2': 'b', 'console-3': 'a', 'notes-app': 'b' })
  })

  it('shows viewers of either node what is published at one', async () => {
    const leave = new AbortController()
    const seen = new Set<string>()
    async function open(node: string) {
      const { token, session_id: sessionId } = await askAsPage<{ token: string; session_id: string }>(
        urlOf(node),
        '/notes',
      )
      const baseUrl = `${urlOf(node)}/cooperative`
      const headers = { authorization: `Bearer ${token}` }
      const site = createCooperativeSiteClient({ baseUrl, sessionId, headers })
      const onEvent = () => void seen.add(node)
      await new Promise((onReady) => site.subscribe({ onReady, onEvent, signal: leave.signal }))
      return site
    }
    const [viewer] = await Promise.all(['a', 'b'].map(open))
    expect(await viewer?.invoke('add_note', { text: 'written at a' })).toMatchObject({ status: 'succeeded' })
    await until('the event at both', async () => (seen.size === 2 ? true : undefined))
    leave.abort()
  })

  it('loses nothing that was admitted when a node is killed: the other delivers it', async () => {
    // Stopped, it acknowledges nothing: what the node has attempted is still to be delivered when the node dies.
    const client = host.pids['console-3'] as number
    // Only an idle worker is given another task.
    await until('an idle worker', async () => {
      const idle = await itemsOf<Context>('/contexts?client_id=console-3&ownership=worker&status=idle')
      return idle.find(({ task_id }) => task_id === null)
    })
    process.kill(client, 'SIGSTOP')
    const attempted = await until('an attempt of node a without acknowledgement', async () => {
      for (const command of (await note()).values()) {
        // A call is attempted once, so that an action runs at most once: tasks it is.
        const isTask = command.client_id === 'console-3' && command.command_id.startsWith('count-')
        const status = isTask ? await statusOf(command) : undefined
        const { attempts, acknowledgement, terminal } = status ?? {}
        // A first attempt: one whose last attempt was under way would end with the node.
        const isFirst = attempts?.count === 1 && attempts.last_node_id === 'a'
        if (isFirst && acknowledgement?.state === 'none' && !terminal) return command
      }
      return undefined
    })
    await note()
    process.kill(pidOf('node a'), 'SIGKILL')
    process.kill(client, 'SIGCONT')

    const ends = await until(
      'the end of every command',
      async () => {
        const statuses = await Promise.all([...admitted.values()].map(statusOf))
        return statuses.every((status) => status?.terminal) ? (statuses as DeliveryStatus[]) : undefined
      },
      TERMINAL_MS,
    )
    expect(ends).toHaveLength(admitted.size)
    const taken = ends.find(({ command_id }) => command_id === attempted.command_id) as DeliveryStatus
    expect(taken.attempts.last_node_id, JSON.stringify(taken)).toBe('b')
    // A busy machine may deliver it too late for its result.
    if (taken.terminal?.reason === 'deadline_passed')
      expect(taken.terminal.at >= (taken.admission.deadline_at as string)).toBe(true)
    else expect(taken).toMatchObject({ acknowledgement: { state: 'acknowledged' }, terminal: { state: 'resulted' } })
  })

  it('shows the dead node stale, and its clients at the other', async () => {
    const nodes = await until('a stale node', async () => {
      const listed = await itemsOf<DeliveryNode>('/delivery/nodes')
      return listed.some(({ stale }) => stale) ? listed : undefined
    })
    expect(nodes.map(({ node_id, stale }) => [node_id, stale]).sort()).toEqual([
      ['a', true],
      ['b', false],
    ])
    const moved = { 'console-1': 'b', 'console-2': 'b', 'console-3': 'b', 'notes-app': 'b' }
    const all = await until('all clients at node b', async () => {
      const nodesNow = await nodesOfClients()
      return Object.values(nodesNow).every((node) => node === 'b') && nodesNow['console-3'] ? nodesNow : undefined
    })
    expect(all).toEqual(moved)
  })

  it('frees every worker that the dead node had assigned a task, and assigns new tasks', async () => {
    const busy = new Set<string>()
    const since = new Date().toISOString()
    await until('six workers, free or at a new task', async () => {
      const workers = await itemsOf<Context>('/contexts?ownership=worker')
      for (const { client_id, task_assigned_at } of workers) if ((task_assigned_at ?? '') > since) busy.add(client_id)
      const isFine = ({ status, task_assigned_at }: Context) =>
        task_assigned_at === null ? status === 'idle' : task_assigned_at > since
      return workers.filter(isFine).length === 6 && busy.size === 3 ? true : undefined
    })
  })

  it('ends at once after Ctrl-C, with exit code 0, no process and no folder left', async () => {
    expect(await end(host)).toBe(0)
    expect(all().filter(isAlive)).toEqual([])
    expect(readdirSync(folder)).toEqual([])
  })
})
