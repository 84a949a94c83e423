# RUN: shape_prop
# ERROR: kPassFailed the pass 'shape_prop' needs example inputs
fx 1
%x = placeholder[target=x]
return %x
