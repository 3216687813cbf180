/** Records as text: whatever a client calls its fields, a terminal is shown it and does not obey it. */
import { expect, it } from 'vitest'
import { recordLines, tableOf } from '../../src/cli/text/table.js'

it('escapes names with control characters', () => {
  const record = { client_id: 'desk', metadata: { 'x\u001b[2J': 1 }, '\u001b]0;owned\u0007': 2 }
  for (const lines of [recordLines(record), tableOf([record], 200).lines, tableOf([record], 5).hidden]) {
    expect(lines.join('\n')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/)
    expect(lines.join('\n')).toContain('owned')
  }
})
