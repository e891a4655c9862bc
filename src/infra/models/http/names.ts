import { compile } from '@jmespath-community/jmespath'

type Node = ReturnType<typeof compile>

/** What an expression takes from its data directly, and the variables it uses without giving them a value. */
export type Names = { fields: Set<string>; unbound: Set<string> }

const keepsItsInput = (node: Node): boolean =>
  node.type === 'Current' || node.type === 'Identity' || node.type === 'Root'

/**
 * Walks the parts of an expression that work on the whole data (`atTop`) and on pieces of it. A part behind a pipe, a
 * dot or a projection sees pieces only, so its fields say nothing about the data's own.
 */
const walk = (node: Node, atTop: boolean, bound: ReadonlySet<string>, names: Names): void => {
  const both = (left: Node, right: Node, rightAtTop: boolean): void => {
    walk(left, atTop, bound, names)
    walk(right, rightAtTop, bound, names)
  }
  switch (node.type) {
    case 'Field':
      if (atTop) names.fields.add(node.name)
      return
    case 'Variable':
      if (!bound.has(node.name)) names.unbound.add(node.name)
      return
    case 'Subexpression':
    case 'IndexExpression':
    case 'Pipe':
      both(node.left, node.right, keepsItsInput(node.left) && (atTop || node.left.type === 'Root'))
      return
    case 'Projection':
    case 'ValueProjection':
      both(node.left, node.right, false)
      return
    case 'FilterProjection':
      both(node.left, node.right, false)
      walk(node.condition, false, bound, names)
      return
    case 'AndExpression':
    case 'OrExpression':
    case 'Comparator':
    case 'Arithmetic':
      both(node.left, node.right, atTop)
      return
    case 'NotExpression':
    case 'Flatten':
      walk(node.child, atTop, bound, names)
      return
    case 'ExpressionReference':
      walk(node.child, false, bound, names)
      return
    case 'Unary':
      walk(node.operand, atTop, bound, names)
      return
    case 'Ternary':
      walk(node.condition, atTop, bound, names)
      both(node.trueExpr, node.falseExpr, atTop)
      return
    case 'MultiSelectHash':
      for (const { value } of node.children) walk(value, atTop, bound, names)
      return
    case 'MultiSelectList':
    case 'Function':
      for (const child of node.children) walk(child, atTop, bound, names)
      return
    case 'LetExpression': {
      for (const { reference } of node.bindings) walk(reference, atTop, bound, names)
      const inner = new Set([...bound, ...node.bindings.map(({ variable }) => variable)])
      walk(node.expression, atTop, inner, names)
      return
    }
    default:
      return
  }
}

/** Throws where the text is no expression. */
export const namesIn = (expression: string): Names => {
  const names: Names = { fields: new Set(), unbound: new Set() }
  walk(compile(expression), true, new Set(), names)
  return names
}
