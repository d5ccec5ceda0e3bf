"""What backward keeps of forward: one function per tensor, composed per kind of layer.

`layer.rows` lists one layer, `head.rows` what lies outside the layers. Which variant of a kernel runs is data
(`scope.Kernels`); which parallel degree divides a tensor follows from its dimensions.
"""
