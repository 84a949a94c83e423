# Constants that are equal in Python but not of one type stay apart: 1, 1.0, True; 0.0 and -0.0.
# RUN: cse
# INPUT: x = i64[3]
# INPUT: y = f32[3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%y = placeholder[target=y]
%a = call_function[target=operator.add](args = (%x, 1))
%b = call_function[target=operator.add](args = (%x, 1.0))
%c = call_function[target=operator.add](args = (%x, True))
%d = call_function[target=operator.add](args = (%y, 0.0))
%e = call_function[target=operator.add](args = (%y, -0.0))
return (%a, %b, %c, %d, %e)
