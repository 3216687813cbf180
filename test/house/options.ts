/** Reads from the sources which options a host may give as numbers. */
import ts from 'typescript'
import { readFiles } from './imports.js'

/** Whether a host may leave it out and, where it does not, gives a number. */
function isNumberOption(node: ts.Node): node is ts.PropertySignature {
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
      const name = isNamed ? node.name.text : owner
      if (isNumberOption(node)) found.set(name, [...(found.get(name) ?? []), node.name.getText()])
      ts.forEachChild(node, (child) => visit(child, name))
    }
    visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true), '')
  }
  return new Map([...found].filter(([name]) => /(Options|Bounds|Limits|Timeouts|Deps)$/.test(name)))
}
