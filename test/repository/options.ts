/** Reads from the sources which options a host may give as numbers. */
import ts from 'typescript'
import { OWNERS } from './declarations.js'
import { readFiles, treeOf } from './imports.js'

const NUMBER = /^(?:count|derived|duration|share|timer|whole|custom<number)\b/

/** Whether a host may leave it out and, where it does not, gives a number. */
function isNumberOption(node: ts.Node): node is ts.PropertySignature | ts.PropertyAssignment {
  if (ts.isPropertyAssignment(node)) return NUMBER.test(node.initializer.getText())
  if (!ts.isPropertySignature(node) || !node.questionToken || !node.type) return false
  const types = ts.isUnionTypeNode(node.type) ? [...node.type.types] : [node.type]
  return types.some(({ kind }) => kind === ts.SyntaxKind.NumberKeyword)
}

/** Every declaration of options with the names of those that are numbers. */
export function numberOptions(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { path, text } of readFiles('src')) {
    const visit = (node: ts.Node, owner: string): void => {
      const isNamed = ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)
      const isSchema = ts.isVariableDeclaration(node) && OWNERS.get(node.name.getText())
      const name = isNamed ? node.name.text : isSchema || owner
      if (isNumberOption(node)) found.set(name, [...(found.get(name) ?? []), node.name.getText()])
      ts.forEachChild(node, (child) => visit(child, name))
    }
    visit(treeOf(path, text), '')
  }
  return new Map([...found].filter(([name]) => /(Options|Bounds|Limits|Timeouts|Deps)$/.test(name)))
}

/** Of each option that is a number, its default as its comment says it, and as it is. */
export function numberDefaults(): { name: string; said: number; held: number }[] {
  const option = /@default ([\d_]+)[^@]*?\*\/(?:\s*\/\/.*)?\s*(\w+): (?:count|duration|timer)\(([\d_]+)/g
  const toNumber = (text = '') => Number(text.replaceAll('_', ''))
  return readFiles('src').flatMap(({ text }) =>
    Array.from(text.matchAll(option), ([, said, name = '', held]) => ({
      name,
      said: toNumber(said),
      held: toNumber(held),
    })),
  )
}
