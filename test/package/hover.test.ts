/** Checks what an editor shows for the symbols and fields of the built package. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Consumer, createConsumer } from './consumer.js'

/** Each name after a mark is one that a user points at. */
const PROBE = `
import { createDiagnosticsRouter, type DeliveryStatus, type Connection, type Finding } from 'relayscope'
import { createCommandDispatcher, createConnectionRegistry, createContextRegistry, createDeduplicator, createMessageHistory, createRpcCorrelator } from 'relayscope/memory'
import { createRedisFacilities } from 'relayscope/redis'
import { createCooperativeSiteRouter, ingestCooperativeSiteMessage } from 'relayscope/cooperative-site'

/**/createDiagnosticsRouter({ /**/inspectors: {}, /**/auth: {} as never })
const registry = /**/createConnectionRegistry({ /**/heartbeatTimeoutMs: 1, /**/nodeId: 'n' })
const connected = registry./**/connect({ /**/user_id: 'u', /**/client_id: 'c', /**/instance_id: 'i', /**/client_type: 'web' })
registry./**/heartbeat('c')
registry./**/disconnect('c')
const dispatcher = /**/createCommandDispatcher({ /**/ackTimeoutMs: 1, /**/capacity: 1 })
const dispatched = dispatcher./**/dispatch({ user_id: 'u', client_id: 'c', /**/command_id: 'k', /**/action: 'a', /**/payload: 1, /**/scope_id: 's', /**/deadline_ms: 1, /**/max_attempts: 1, /**/require_waiter: true })
dispatcher./**/attach({ user_id: 'u', client_id: 'c', instance_id: 'i' }, () => {})
dispatcher./**/acknowledge({ user_id: 'u', client_id: 'c', command_id: 'k', /**/instance_id: 'i' })
dispatcher./**/settle({ user_id: 'u', client_id: 'c', command_id: 'k', /**/state: 'resulted', /**/acknowledge: true })
dispatcher./**/cancel({ user_id: 'u', client_id: 'c', command_id: 'k', /**/reason: 'r' })
/**/createContextRegistry()./**/report({ /**/context_id: 'x', user_id: 'u', client_id: 'c', client_type: 'browser', /**/status: 'active', /**/ownership: 'worker' })
const calls = /**/createRpcCorrelator({ /**/maxPending: 1 })
calls./**/open({ user_id: 'u', client_id: 'c', action: 'a', /**/timeout_ms: 1 })
calls./**/settle('c', { result: 1 })
/**/createDeduplicator()./**/claim({ user_id: 'u', /**/message_id: 'm' })
/**/createMessageHistory()./**/append
/**/createRedisFacilities
/**/createCooperativeSiteRouter
/**/ingestCooperativeSiteMessage
declare const status: DeliveryStatus
status./**/admission./**/state
status./**/attempts./**/confirmed
status.attempts./**/items[0]!./**/node_id
status./**/acknowledgement./**/at
status./**/terminal?./**/reason
declare const connection: Connection
connection./**/connection_id
connection./**/connected_at
connection./**/status
connection./**/metadata
declare const finding: Finding
finding./**/kind
finding./**/since
`

let consumer: Consumer
beforeAll(async () => {
  consumer = await createConsumer()
})
afterAll(() => consumer?.remove())

/** A language service over the probe, as an editor would run it. */
function serviceFor(file: string): ts.LanguageService {
  return ts.createLanguageService({
    getScriptFileNames: () => [file],
    getScriptVersion: () => '1',
    getScriptSnapshot(path) {
      if (path === file) return ts.ScriptSnapshot.fromString(PROBE)
      return existsSync(path) ? ts.ScriptSnapshot.fromString(readFileSync(path, 'utf8')) : undefined
    },
    getCurrentDirectory: () => consumer.dir,
    getCompilationSettings: () => ({
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2023,
      strict: true,
      skipLibCheck: true,
    }),
    getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
    fileExists: (path) => path === file || ts.sys.fileExists(path),
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    realpath: ts.sys.realpath,
  })
}

describe('an editor', () => {
  it('shows a text for each function, option, input field and record field of the probe', () => {
    const file = join(consumer.dir, 'probe.ts')
    const service = serviceFor(file)
    const marks = [...PROBE.matchAll(/\/\*\*\/(\w+)/g)]
    expect(marks.length).toBeGreaterThan(60)
    const silent = marks.flatMap((mark) => {
      const shown = service.getQuickInfoAtPosition(file, mark.index + '/**/'.length)
      const text = ts.displayPartsToString(shown?.documentation)
      return text === '' ? [`${mark[1]}: ${ts.displayPartsToString(shown?.displayParts).slice(0, 80)}`] : []
    })
    expect(silent).toEqual([])
  })
})
