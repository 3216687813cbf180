/** Holds the custom inspector to its contract. `node --test examples/custom-inspector-test.mjs` */

// #region contract
import { test } from 'node:test'
import { rpcContract } from 'relayscope/testing'
import { inspectCalls } from './custom-inspector.mjs'

const call = (sequence, user, action) => ({ sequence, user, client: 'laptop', action, startedAt: 0 })
const calls = new Map([
  ['c-1', call(1, 'ada', 'report_load')],
  ['c-2', call(2, 'bob', 'report_load')],
  ['c-4', call(4, 'ada', 'count_words')],
])
const inspector = inspectCalls(calls, () => 60_000)

for (const { name, run } of rpcContract(() => inspector)) test(name, run)
// #endregion
